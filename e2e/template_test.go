package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// templates returns the Node of an answer in both wire generations: field 1 (CA up to 1.34.1) and field 2 (CA from
// 1.34.2).
func templates(t *testing.T, call ca.Call) (first, second *corev1.Node) {
	t.Helper()
	require.True(t, call.OK(), call)
	res := call.Response.(*protos.NodeGroupTemplateNodeInfoResponse)
	first = res.GetNodeInfo()
	require.NotNil(t, first, "field 1")
	for unknown := []byte(res.ProtoReflect().GetUnknown()); len(unknown) > 0; {
		number, kind, n := protowire.ConsumeTag(unknown)
		require.GreaterOrEqual(t, n, 0)
		unknown = unknown[n:]
		if number == 2 && kind == protowire.BytesType {
			b, n := protowire.ConsumeBytes(unknown)
			require.GreaterOrEqual(t, n, 0)
			second = &corev1.Node{}
			require.NoError(t, second.Unmarshal(b))
			unknown = unknown[n:]
			continue
		}
		n = protowire.ConsumeFieldValue(number, kind, unknown)
		require.GreaterOrEqual(t, n, 0)
		unknown = unknown[n:]
	}
	require.NotNil(t, second, "field 2")
	return first, second
}

// sameAsTemplate requires that the real node equals the template that CA received. It compares the permanent taints,
// the exact capacity and allocatable amounts, and every label except the hostname. It returns the labels that only
// the real node has.
func sameAsTemplate(template, node *corev1.Node) (extra []string, err error) {
	var wrong []error
	for _, k := range slices.Sorted(maps.Keys(template.Labels)) {
		if got, ok := node.Labels[k]; k != corev1.LabelHostname && (!ok || got != template.Labels[k]) {
			wrong = append(wrong, fmt.Errorf("label %s: template has %q, node has %q (present: %v)", k, template.Labels[k], got,
				ok))
		}
	}
	for name, diff := range map[string]string{
		"taints":      cmp.Diff(taints(template), taints(node)),
		"capacity":    cmp.Diff(quantities(template.Status.Capacity), quantities(node.Status.Capacity)),
		"allocatable": cmp.Diff(quantities(template.Status.Allocatable), quantities(node.Status.Allocatable)),
	} {
		if diff != "" {
			wrong = append(wrong, fmt.Errorf("%s (- template, + node):\n%s", name, diff))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(node.Labels)) {
		if _, ok := template.Labels[k]; !ok {
			extra = append(extra, k+"="+node.Labels[k])
		}
	}
	return extra, errors.Join(wrong...)
}

// TestSameAsTemplateSeesEveryDifference checks sameAsTemplate with changed nodes. It needs no lab.
func TestSameAsTemplateSeesEveryDifference(t *testing.T) {
	make := func(change func(*corev1.Node)) *corev1.Node {
		size := func() corev1.ResourceList {
			return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
				corev1.ResourcePods: resource.MustParse("10")}
		}
		n := &corev1.Node{}
		n.Labels = map[string]string{"pool": "a", corev1.LabelHostname: "x"}
		n.Spec.Taints = []corev1.Taint{{Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule}}
		n.Status.Capacity, n.Status.Allocatable = size(), size()
		change(n)
		return n
	}
	template := make(func(*corev1.Node) {})
	extra, err := sameAsTemplate(template, make(func(n *corev1.Node) {
		n.Labels[corev1.LabelHostname], n.Labels["more"] = "y", "z"
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/not-ready",
			Effect: corev1.TaintEffectNoSchedule})
		n.Status.Capacity[corev1.ResourceCPU] = resource.MustParse("2000m")
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"more=z"}, extra)
	for name, change := range map[string]func(*corev1.Node){
		"label pool":  func(n *corev1.Node) { n.Labels["pool"] = "b" },
		"taints":      func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectNoExecute },
		"capacity":    func(n *corev1.Node) { delete(n.Status.Capacity, corev1.ResourcePods) },
		"allocatable": func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("1Gi") },
	} {
		_, err := sameAsTemplate(template, make(change))
		require.ErrorContains(t, err, name)
	}
}

// taints returns the permanent taints. CA removes taints of conditions and its own marks from every template (CA
// utils/taints/taints.go).
func taints(n *corev1.Node) []string {
	var out []string
	for _, t := range n.Spec.Taints {
		if !strings.HasPrefix(t.Key, "node.kubernetes.io/") && !strings.HasSuffix(t.Key, "ClusterAutoscaler") {
			out = append(out, fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect))
		}
	}
	slices.Sort(out)
	return out
}

func quantities(l corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range l {
		out[string(name)] = fmt.Sprintf("%d milli", q.MilliValue())
	}
	return out
}
