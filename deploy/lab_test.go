package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestLabPolicies makes the attempts of TestInstall on the clusters of a lab, where Liqo's webhooks and controllers and
// Kubernetes' garbage collector run: what a policy refuses there is refused beside them, too, and what Liqo changes in
// an object before a policy sees it makes no difference.
func TestLabPolicies(t *testing.T) {
	root := os.Getenv("LIQO_AUTOSCALER_LAB")
	if root == "" {
		t.Skip("needs real Liqo: make e2e SUITE=trust")
	}
	t.Run("consumer", func(t *testing.T) {
		c := labCluster(t, root, "consumer")
		c.prepare(t)
		c.kubectl(t, nil, "create", "namespace", namespace)
		manifest, err := template(t, "--values", valuesFile("plaintext"), "--show-only", "templates/serviceaccounts.yaml",
			"--show-only", "templates/worker-rbac.yaml", "--show-only", "templates/worker-policy.yaml")
		require.NoError(t, err, "%s", manifest)
		c.kubectl(t, manifest, "apply", "--server-side", "-f", "-")
		account := nameOf("plaintext") + "-worker"
		e := escalation{c.holder(t, namespace, account), account, account + "-tenant", "liqo", "default"}
		c.admitted(t, e)
		workerDenies(t, c, e)
	})
	t.Run("provider", func(t *testing.T) {
		c := labCluster(t, root, "provider1")
		raw, err := exec.CommandContext(t.Context(), tool(t, "LIQO_AUTOSCALER"), "provider-access", "--consumer-id",
			"rome").Output()
		require.NoError(t, err)
		c.kubectl(t, raw, "apply", "--server-side", "-f", "-")
		providerDenies(t, c, c.holder(t, namespace, "consumer-rome"))
	})
}

// labCluster returns a cluster of the lab, whose policies stay as they are.
func labCluster(t *testing.T, root, name string) *cluster {
	t.Helper()
	c := &cluster{bin: os.Getenv("LAB_BIN"), kubeconfig: filepath.Join(root, name+".kubeconfig")}
	var err error
	c.config, err = clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	require.NoError(t, err)
	c.config.QPS, c.config.Burst = 200, 400
	c.kube, err = kubernetes.NewForConfig(c.config)
	require.NoError(t, err)
	return c
}
