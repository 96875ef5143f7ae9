package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// TestLabPolicies repeats the attempts of TestInstall on the clusters of a lab. There, Liqo's webhooks and
// controllers and Kubernetes' garbage collector run. Each attempt is refused by a policy or by a webhook of Liqo, or
// it has no effect. An attempt has no effect if Liqo's mutating webhooks overwrite the value before a policy sees it:
// the template of a new VirtualNode, the arguments of an existing one, or the label of a Tenant.
func TestLabPolicies(t *testing.T) {
	root := os.Getenv("LIQO_AUTOSCALER_LAB")
	if root == "" {
		t.Skip("needs real Liqo: make e2e SUITE=trust")
	}
	t.Run("consumer", func(t *testing.T) {
		c := labCluster(t, root, "consumer")
		for _, name := range []string{namespace, "liqo-system", "providers", "partners"} {
			c.kubectl(t, nil, "create", "namespace", name)
		}
		c.prepare(t)
		manifest, err := template(t, "--values", valuesFile("plaintext"), "--show-only", "templates/serviceaccounts.yaml",
			"--show-only", "templates/worker-rbac.yaml", "--show-only", "templates/worker-policy.yaml", "--show-only",
			"templates/renewal.yaml")
		require.NoError(t, err, "%s", manifest)
		c.kubectl(t, manifest, "apply", "--server-side", "-f", "-")
		c.undoes = func(what string) bool { // attempts on VirtualNodes that have no effect
			with, isNew := strings.CutPrefix(what, "create with ")
			return isNew && !slices.Contains(besideTemplate, with) || strings.HasSuffix(what, " by argument") || unknown(what)
		}
		account := nameOf("plaintext") + "-worker"
		e := escalation{c.holder(t, namespace, account), account, account + "-tenant", "liqo", "default"}
		c.admitted(t, e)
		workerDenies(t, c, e)
		writesTemplates(t, e)
		c.renewalDenies(t, "plaintext")
		for account, rows := range map[string]string{"worker": "worker", "renewal": "renewal", "grpcserver": "none",
			"discovery": "none"} {
			c.onlyInventory(t, nameOf("plaintext")+"-"+account, rows, namespace, "liqo", "liqo-tenant-x")
		}
	})
	t.Run("provider", func(t *testing.T) {
		c := labCluster(t, root, "provider1")
		grant := func(flags ...string) {
			raw, err := exec.CommandContext(t.Context(), tool(t, "LIQO_AUTOSCALER"), append([]string{"provider-access",
				"--consumer-id", "rome"}, flags...)...).Output()
			require.NoError(t, err)
			c.kubectl(t, raw, "apply", "--server-side", "-f", "-")
		}
		grant("--pod-security", "privileged")
		c.lends(t)
		_, err := c.identity(t, "group-00000-1a2b3c4d5e6f", "rome").liqo.Resource(shadowPods).Namespace("default").Create(
			t.Context(), privilegedPod(t), metav1.CreateOptions{})
		require.NoError(t, err)
		grant()
		c.undoes = func(what string) bool { return what == "take the label off" || unknown(what) }
		providerDenies(t, c, c.holder(t, namespace, "consumer-rome"))
		manifest, err := templateAgent(t, "--values", agentValues("least"), "--set", "grantSlices=true", "--show-only",
			"templates/rbac.yaml")
		require.NoError(t, err, "%s", manifest)
		c.kubectl(t, manifest, "apply", "--server-side", "-f", "-")
		for account, rows := range map[string]string{"consumer-rome": "consumer", "liqo-autoscaler-agent": "agent"} {
			c.onlyInventory(t, account, rows, namespace, "liqo", "liqo-tenant-rome", "default")
		}
	})
}

// besideTemplate contains those virtualNodeChanges that do not change the template of the VirtualNode. Liqo's webhook
// does not undo them.
var besideTemplate = []string{"another kubeconfig", "no check by Liqo", "a finalizer", "an owner that is not there"}

// writesTemplates checks that Liqo's webhook replaces the template of each new VirtualNode, and that the result is
// always the same.
func writesTemplates(t *testing.T, e escalation) {
	t.Helper()
	template := func(v virtualNode) any {
		in := e.holder.liqo.Resource(virtualNodes).Namespace("liqo-tenant-x")
		made, err := in.Create(t.Context(), v.object(), dryCreate)
		if err != nil {
			require.ErrorContains(t, err, " denied ")
			return nil
		}
		return made.Object["spec"].(map[string]any)["template"]
	}
	same := template(completed("x", "virtual-kubelet:1"))
	require.NotNil(t, same)
	for _, with := range virtualNodeChanges {
		v := completed("x", "virtual-kubelet:1")
		with.change(v)
		if got := template(v); got != nil && !slices.Contains(besideTemplate, with.what) {
			require.Equal(t, same, got, with.what)
		}
	}
}

// unknown reports whether the lab's version of Liqo does not have the field that the attempt sets. The API server
// then drops this field.
func unknown(what string) bool {
	return what == "Service of its own" && strings.HasPrefix(os.Getenv("LIQO_AUTOSCALER_LAB_LIQO"), "v1.1.")
}

// labCluster returns a cluster of the lab. judge does not remove validations on such a cluster.
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

// lends gives each identity of the consumer rome a quota for pods in the namespace default, because Liqo's webhook
// requires one.
func (c *cluster) lends(t *testing.T) {
	t.Helper()
	c.kubectl(t, nil, "label", "namespace", "default", remoteID+"=rome")
	for n, user := range []string{"rome", "group-00000-1a2b3c4d5e6f",
		"liqo-peer-user-rome-00112233445566778899aabbccddeeff"} {
		c.kubectl(t, fmt.Appendf(nil, `apiVersion: offloading.liqo.io/v1beta1
kind: Quota
metadata: {name: user-%d, namespace: liqo-tenant-rome}
spec: {user: %q, limitsEnforcement: None, resources: {cpu: "10", memory: 10Gi, pods: "10"}}
`, n, user), "apply", "-f", "-")
	}
}
