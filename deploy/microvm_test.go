package deploy_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// machinesAlone checks the worker's account in an installation for hosts of microVMs. The account may change and
// remove only the Nodes of microVMs. It may not write a Secret in any namespace.
func machinesAlone(t *testing.T, c *cluster) {
	c.kubectl(t, nil, "create", "namespace", "machines")
	out, err := c.run(t, tool(t, "HELM"), nil, "install", release, chart, "-n", namespace, "--values",
		valuesFile("plaintext"), "--set", "microvm.enabled=true,microvm.namespace=machines")
	require.NoError(t, err, "%s", out)
	defer func() {
		out, err := c.run(t, tool(t, "HELM"), nil, "uninstall", release, "-n", namespace)
		require.NoError(t, err, "%s", out)
	}()
	for name, labels := range map[string]map[string]string{
		"machine": {fleet.LabelMachineProvider: "rack-1"}, "another": {fleet.LabelProvider: "milan"},
	} {
		_, err := c.kube.CoreV1().Nodes().Create(t.Context(),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	h := c.holder(t, namespace, nameOf("plaintext")+"-worker")
	patch := func(node, change string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := h.kube.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(change), dryPatch)
			return err
		}
	}
	remove := func(node string) func(context.Context) error {
		return func(ctx context.Context) error { return h.kube.CoreV1().Nodes().Delete(ctx, node, dryDelete) }
	}
	const policy, right = "only machines of its own kind", "cannot create resource"
	c.judge(t, []attempt{
		{"cordon another node", policy, patch("another", `{"spec":{"unschedulable":true}}`)},
		{"take another node for a machine", policy,
			patch("another", `{"metadata":{"labels":{"`+fleet.LabelMachineProvider+`":"rack-1"}}}`)},
		{"remove another node", policy, remove("another")},
		{"stamp a machine", "", patch("machine", `{"spec":{"providerID":"liqo://g/x"}}`)},
		{"remove a machine", "", remove("machine")},
		{"a record", "", func(ctx context.Context) error {
			_, err := h.kube.CoreV1().ConfigMaps("machines").Create(ctx,
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "node.x"}}, dryCreate)
			return err
		}},
		{"a Secret in the namespace", right, func(ctx context.Context) error { return h.createSecret(ctx, "machines", "x") }},
		{"a Secret of Liqo's", right, func(ctx context.Context) error { return h.createSecret(ctx, "liqo-tenant-x", "x") }},
	})
	c.eachWasRemoved(t)
}
