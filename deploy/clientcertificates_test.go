package deploy_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The agent and the worker present a certificate from a Secret instead of a token. The server has the authorities
// that sign these certificates. Each pod mounts the Secret as a folder, and not single files, so that the files
// change with the Secret. It mounts only the keys that it needs.
func TestClientCertificatesReplaceTokens(t *testing.T) {
	out, err := templateAgent(t, "--values", agentValues("full"), "--set",
		"discovery.token.secretName=,discovery.certificate.secretName=agent-client")
	require.NoError(t, err, "%s", out)
	agent := one[appsv1.Deployment](t, decode(t, out), namespace, agentSets["full"])
	hub := render(t, "existing")
	worker := one[appsv1.Deployment](t, hub, namespace, "lender-worker")
	server := one[appsv1.Deployment](t, hub, namespace, "lender-discovery")
	for _, of := range []struct {
		*appsv1.Deployment
		flag, secret string
		keys         []string
	}{
		{agent, "--discovery-cert", "agent-client", []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}},
		{agent, "--discovery-key", "agent-client", []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}},
		{worker, "--discovery-cert", "discovery-client", []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}},
		{worker, "--discovery-key", "discovery-client", []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey}},
		{server, "--tls-client-ca", "discovery-clients", []string{"root.pem"}},
	} {
		c := of.Spec.Template.Spec.Containers[0]
		file := flagValue(c, of.flag)
		require.Contains(t, of.keys, filepath.Base(file), of.flag)
		require.Empty(t, flagValue(c, "--discovery-token-file"), "the token alone would count")
		volume := ""
		for _, m := range c.VolumeMounts {
			if m.MountPath == filepath.Dir(file) {
				require.Empty(t, m.SubPath, "a single file of a volume never changes")
				volume = m.Name
			}
		}
		found := false
		for _, v := range of.Spec.Template.Spec.Volumes {
			if v.Name == volume {
				require.Equal(t, of.secret, v.Secret.SecretName, of.flag)
				var keys []string
				for _, item := range v.Secret.Items {
					require.Equal(t, item.Key, item.Path)
					keys = append(keys, item.Key)
				}
				require.Equal(t, of.keys, keys)
				found = true
			}
		}
		require.True(t, found, of.flag)
	}
	require.Empty(t, flagValue(one[appsv1.Deployment](t, render(t, "certmanager"), namespace,
		release+"-discovery").Spec.Template.Spec.Containers[0], "--tls-client-ca"), "no certificate by default")
}
