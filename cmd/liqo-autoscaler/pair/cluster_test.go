package pair

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// open finds a context by its exact name. It refuses an API server whose certificate would not be verified.
func TestOpenRefusesAnUnverifiedServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
current-context: munich
contexts:
- {name: munich, context: {cluster: a}}
- {name: milan, context: {cluster: b}}
- {name: rome, context: {cluster: c}}
clusters:
- {name: a, cluster: {server: "https://munich:6443"}}
- {name: b, cluster: {server: "https://milan:6443", insecure-skip-tls-verify: true}}
- {name: c, cluster: {server: "http://rome:8080"}}
`), 0o600))
	c, err := open("consumer", path, "munich")
	require.NoError(t, err)
	require.Equal(t, "https://munich:6443", c.admin.Host)
	for context, says := range map[string]string{
		"turin": `--provider-context "turin": the kubeconfig (--kubeconfig, KUBECONFIG or ~/.kube/config) has no such context; ` +
			"it has: milan, munich, rome",
		"milan": "provider (context milan): its entry in the kubeconfig has insecure-skip-tls-verify",
		"rome":  "provider (context rome): its entry in the kubeconfig has a server that is not https://",
	} {
		_, err := open("provider", path, context)
		require.ErrorContains(t, err, says)
	}
	_, err = open("provider", path+".none", "milan")
	require.ErrorContains(t, err, "no such file")
}
