package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func TestLimits(t *testing.T) {
	shape := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"),
		corev1.ResourceMemory: resource.MustParse("4Gi")}
	var use fleet.Use
	use.Add(3, shape)
	require.Equal(t, 3, use.Nodes)
	require.Equal(t, "4500m", use.CPU.String())
	require.Equal(t, "12Gi", use.Memory.String())
	require.Equal(t, "1500m", shape.Cpu().String(), "the shape is left alone")

	for _, c := range []struct {
		name   string
		limits fleet.Limits
		more   int
		want   string
	}{
		{"no limits", fleet.Limits{}, 1000, ""},
		{"up to the limit", fleet.Limits{Nodes: ptr.To(5), CPU: ptr.To(resource.MustParse("7.5")),
			Memory: ptr.To(resource.MustParse("20Gi"))}, 2, ""},
		{"nodes", fleet.Limits{Nodes: ptr.To(4)}, 2, "limits.nodes is 4, 3 are counted and 2 more asked for"},
		{"cpu", fleet.Limits{CPU: ptr.To(resource.MustParse("7"))}, 2,
			"limits.cpu is 7, 4500m is counted and 3 more asked for"},
		{"memory", fleet.Limits{Memory: ptr.To(resource.MustParse("19Gi"))}, 2,
			"limits.memory is 19Gi, 12Gi is counted and 8Gi more asked for"},
		{"lowered below what is", fleet.Limits{Nodes: ptr.To(2)}, 1, "limits.nodes is 2, 3 are counted and 1 more asked for"},
	} {
		require.Equal(t, c.want, c.limits.Over(use, c.more, shape), c.name)
		require.Equal(t, c.name != "no limits", c.limits.Any())
	}
}

func TestRoom(t *testing.T) {
	shape := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
		corev1.ResourceMemory: resource.MustParse("4Gi")}
	var use fleet.Use
	use.Add(2, shape)
	require.Equal(t, 7, fleet.Limits{}.Room(use, 7, shape))
	require.Equal(t, 3, fleet.Limits{CPU: ptr.To(resource.MustParse("11"))}.Room(use, 7, shape))
	require.Equal(t, 1, fleet.Limits{CPU: ptr.To(resource.MustParse("11")), Nodes: ptr.To(3)}.Room(use, 7, shape))
	require.Equal(t, 0, fleet.Limits{Nodes: ptr.To(1)}.Room(use, 7, shape), "passed already")
	require.Equal(t, 0, fleet.Limits{}.Room(use, -1, shape))
}

func TestSameTemplate(t *testing.T) {
	one := fleet.GroupSpec{ID: "a", Max: 1, Shape: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		Labels: map[string]string{}}
	two := fleet.GroupSpec{ID: "a", Max: 5, Shape: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2000m")}}
	require.True(t, one.SameTemplate(two), "max and spelling do not matter")
	for name, change := range map[string]func(*fleet.GroupSpec){
		"shape":      func(s *fleet.GroupSpec) { s.Shape = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")} },
		"labels":     func(s *fleet.GroupSpec) { s.Labels = map[string]string{"a": "b"} },
		"taints":     func(s *fleet.GroupSpec) { s.Taints = []corev1.Taint{{Key: "a"}} },
		"groupTaint": func(s *fleet.GroupSpec) { s.GroupTaint = corev1.TaintEffectNoSchedule },
	} {
		changed := two
		change(&changed)
		require.False(t, one.SameTemplate(changed), name)
		changed = changed.WithTemplateOf(one)
		require.True(t, one.SameTemplate(changed), name)
		require.Equal(t, 5, changed.Max)
	}
}

func TestGroupTaint(t *testing.T) {
	spec := fleet.GroupSpec{ID: "gpu", Taints: []corev1.Taint{{Key: "burst", Effect: corev1.TaintEffectNoSchedule}}}
	require.Equal(t, spec.Taints, spec.NodeTaints())
	hash := spec.Hash()
	spec.GroupTaint = corev1.TaintEffectPreferNoSchedule
	require.Equal(t, []corev1.Taint{
		{Key: "burst", Effect: corev1.TaintEffectNoSchedule},
		{Key: "liqo-autoscaler.io/group", Value: "gpu", Effect: corev1.TaintEffectPreferNoSchedule},
	}, spec.NodeTaints())
	require.NotEqual(t, hash, spec.Hash())
	require.Len(t, spec.Taints, 1, "the spec is left alone")
}
