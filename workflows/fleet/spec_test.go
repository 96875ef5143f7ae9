package fleet_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

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
