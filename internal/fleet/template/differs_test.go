package template

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func alikeSpec() fleet.GroupSpec {
	return fleet.GroupSpec{Max: 5, InstanceSpec: fleet.InstanceSpec{ID: "edge", Labels: map[string]string{"tier": "burst"},
		Taints: []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}},
		Shape: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
			corev1.ResourcePods: resource.MustParse("20")}}}
}

// Each field that CA's simulation uses is compared. Fields that change while the node runs are not compared.
func TestFieldsOfCAsSimulationAreCompared(t *testing.T) {
	taint := func(key string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		want   []string
	}{
		"alike":    {change: func(*corev1.Node) {}},
		"spelling": {change: func(n *corev1.Node) { n.Status.Capacity["cpu"] = resource.MustParse("2000m") }},
		"hostname": {change: func(n *corev1.Node) { delete(n.Labels, corev1.LabelHostname) }},
		"one more label": {change: func(n *corev1.Node) {
			n.Labels["liqo.io/remote-cluster-id"] = "milan"
		}},
		"not ready":        {change: taint(corev1.TaintNodeNotReady)},
		"cordoned":         {change: taint(corev1.TaintNodeUnschedulable)},
		"a cloud's":        {change: taint("node.cloudprovider.kubernetes.io/shutdown")},
		"CA deletes it":    {change: taint("ToBeDeletedByClusterAutoscaler")},
		"CA may delete it": {change: taint("DeletionCandidateOfClusterAutoscaler")},
		"starting up":      {change: taint("startup-taint.cluster-autoscaler.kubernetes.io/x")},
		"another label": {func(n *corev1.Node) { n.Labels["tier"] = "x" },
			[]string{"label tier is x instead of burst"}},
		"no label": {func(n *corev1.Node) { delete(n.Labels, "tier") },
			[]string{"label tier=burst is missing"}},
		"Liqo's label": {func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "" },
			[]string{"label kubernetes.io/os is  instead of linux"}},
		"one more taint": {taint("quarantine"), []string{"taint quarantine:NoSchedule is not in the template"}},
		"no taint": {func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[:1] },
			[]string{"taint gpu=yes:NoSchedule is missing"}},
		"no taint of Liqo": {func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[1:] },
			[]string{"taint virtual-node.liqo.io/not-allowed=true:NoExecute is missing"}},
		"another effect": {func(n *corev1.Node) { n.Spec.Taints[1].Effect = "NoExecute" },
			[]string{"taint gpu=yes:NoExecute is not in the template", "taint gpu=yes:NoSchedule is missing"}},
		"another value": {func(n *corev1.Node) { n.Spec.Taints[1].Value = "no" },
			[]string{"taint gpu=no:NoSchedule is not in the template", "taint gpu=yes:NoSchedule is missing"}},
		"less allocatable": {func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("1") },
			[]string{"allocatable cpu is 1 instead of 2"}},
		"a resource lacks": {func(n *corev1.Node) { delete(n.Status.Capacity, "pods") },
			[]string{"capacity pods is 0 instead of 20"}},
		"one more resource": {func(n *corev1.Node) { n.Status.Capacity["gpu"] = resource.MustParse("1") },
			[]string{"capacity gpu is 1 instead of 0"}},
		"several": {func(n *corev1.Node) {
			n.Labels["tier"] = "x"
			n.Status.Allocatable["cpu"] = resource.MustParse("1")
		}, []string{"label tier is x instead of burst", "allocatable cpu is 1 instead of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			node := Of(alikeSpec().InstanceSpec)
			node.Name, node.Labels[corev1.LabelHostname] = "lca-edge-e-1-1", "lca-edge-e-1-1"
			test.change(node)
			require.Equal(t, test.want, Differs(alikeSpec().InstanceSpec, node))
		})
	}
}

// A Node is compared only when CA uses it and its booking is readable. The result of the comparison is not serialized.
func TestOnlyNodesOfCAAreCompared(t *testing.T) {
	node := Of(alikeSpec().InstanceSpec)
	node.Labels["tier"] = "x"
	whole := func() fleet.Found {
		return fleet.Found{Booking: &fleet.Booking{Spec: alikeSpec().InstanceSpec}, Node: true, Stamped: true, Ready: true}
	}
	f := whole()
	Compare(&f, node)
	require.Equal(t, []string{"label tier is x instead of burst"}, f.Differs)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	require.NotContains(t, string(text), "instead of")
	for name, change := range map[string]func(*fleet.Found){
		"not ready":         func(f *fleet.Found) { f.Ready = false },
		"not stamped":       func(f *fleet.Found) { f.Stamped = false },
		"no booking":        func(f *fleet.Found) { f.Booking = nil },
		"a booking of none": func(f *fleet.Found) { f.Booking = &fleet.Booking{} },
	} {
		f := whole()
		change(&f)
		Compare(&f, node)
		require.Nil(t, f.Differs, name)
	}
}

// Machines have no labels of Liqo. A group of machines and a group of virtual nodes have different templates for the
// same id.
func TestMachinesHaveNoLabelsOfLiqo(t *testing.T) {
	virtual, machine := alikeSpec(), alikeSpec()
	machine.Nodes = fleet.NodesMachine
	node := On(machine.InstanceSpec, fleet.Offer{Provider: "rack-1"})
	require.Equal(t, map[string]string{
		corev1.LabelHostname: "template-edge", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		"tier": "burst", fleet.LabelGroup: "edge", fleet.LabelMachineProvider: "rack-1",
	}, node.Labels)
	require.Equal(t, machine.Taints, node.Spec.Taints)
	require.False(t, virtual.SameTemplate(machine))
	require.Equal(t, "rack-1", On(virtual.InstanceSpec, fleet.Offer{Provider: "rack-1"}).Labels[fleet.LabelProvider])
}
