package liqo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzKubeconfig reads kubeconfigs as if they came from Secrets. If the backend accepts a kubeconfig, this kubeconfig
// runs no program and reads no file.
func FuzzKubeconfig(f *testing.F) {
	f.Add([]byte(kubeconfig))
	for _, seed := range []string{
		"users: [{name: u, user: {exec: {command: sh, apiVersion: client.authentication.k8s.io/v1}}}]",
		"users: [{name: u, user: {tokenFile: /etc/passwd}}]",
		"clusters: [{name: c, cluster: {certificate-authority: /etc/passwd, server: 'https://x'}}]",
		"a: &a [1, 1]\nb: [*a, *a, *a]", `{"current-context": "c", "contexts": [{"name": "c"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := inlineConfig(raw)
		if err != nil {
			return
		}
		require.Nil(t, config.ExecProvider)
		require.Nil(t, config.AuthProvider)
		require.Empty(t, config.BearerTokenFile+config.CAFile+config.CertFile+config.KeyFile)
	})
}
