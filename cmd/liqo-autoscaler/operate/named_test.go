package operate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An operator may copy the name of an instance from kubectl, from Cluster Autoscaler's log, or from `status`. Each
// form of the name is accepted.
func TestCopiedNamesAreAccepted(t *testing.T) {
	for name, instance := range map[string]string{
		"standard-tp2z2n-2":                  "standard-tp2z2n-2",
		"lca-standard-tp2z2n-2-2":            "standard-tp2z2n-2",
		"liqo://standard/standard-tp2z2n-2":  "standard-tp2z2n-2",
		"liqo://gpu-a-1/gpu-a-1-tp2z2n-2":    "gpu-a-1-tp2z2n-2",
		"liqo://standard/another-tp2z2n-2-2": "liqo://standard/another-tp2z2n-2-2",
	} {
		require.False(t, isPod(name), name)
		require.Equal(t, instance, instanceNamed(name))
	}
	require.True(t, isPod("shop/web-0"))

	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"clusters: [{name: c, cluster: {server: http://127.0.0.1:1}}]\n"+
		"contexts: [{name: c, context: {cluster: c, namespace: shop}}]\n"), 0o600))
	for name, want := range map[string]string{"web-0": "shop/web-0", "a/b": "a/b"} {
		namespace, pod, err := podNamed(name, kubeconfig)
		require.NoError(t, err)
		require.Equal(t, want, namespace+"/"+pod)
	}
	for _, name := range []string{"", "a/", "/b", "a/b/c"} {
		_, _, err := podNamed(name, kubeconfig)
		require.ErrorIs(t, err, errPodName, name)
	}
}
