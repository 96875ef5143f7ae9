package grpcserver

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestLimitsCompareWithTheUse(t *testing.T) {
	shape := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"),
		corev1.ResourceMemory: resource.MustParse("4Gi")}
	var use Use
	use.Add(3, shape)
	require.Equal(t, 3, use.Nodes)
	require.Equal(t, "4500m", use.CPU.String())
	require.Equal(t, "12Gi", use.Memory.String())
	require.Equal(t, "1500m", shape.Cpu().String(), "the shape is left alone")

	for _, c := range []struct {
		name   string
		limits Limits
		more   int
		want   string
	}{
		{"no limits", Limits{}, 1000, ""},
		{"up to the limit", Limits{Nodes: ptr.To(5), CPU: ptr.To(resource.MustParse("7.5")),
			Memory: ptr.To(resource.MustParse("20Gi"))}, 2, ""},
		{"nodes", Limits{Nodes: ptr.To(4)}, 2, "limits.nodes is 4, 3 exist and 2 more are requested"},
		{"cpu", Limits{CPU: ptr.To(resource.MustParse("7"))}, 2,
			"limits.cpu is 7, 4500m is in use and 3 more is requested"},
		{"memory", Limits{Memory: ptr.To(resource.MustParse("19Gi"))}, 2,
			"limits.memory is 19Gi, 12Gi is in use and 8Gi more is requested"},
		{"lowered below what is", Limits{Nodes: ptr.To(2)}, 1, "limits.nodes is 2, 3 exist and 1 more are requested"},
	} {
		require.Equal(t, c.want, c.limits.Over(use, c.more, shape), c.name)
		require.Equal(t, c.name != "no limits", c.limits.Any())
	}
}

func TestRoomWithinTheLimits(t *testing.T) {
	shape := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
		corev1.ResourceMemory: resource.MustParse("4Gi")}
	var use Use
	use.Add(2, shape)
	require.Equal(t, 7, Limits{}.Room(use, 7, shape))
	require.Equal(t, 3, Limits{CPU: ptr.To(resource.MustParse("11"))}.Room(use, 7, shape))
	require.Equal(t, 1, Limits{CPU: ptr.To(resource.MustParse("11")), Nodes: ptr.To(3)}.Room(use, 7, shape))
	require.Equal(t, 0, Limits{Nodes: ptr.To(1)}.Room(use, 7, shape), "passed already")
	require.Equal(t, 0, Limits{}.Room(use, -1, shape))
}

// A quantity that is stored as a decimal keeps its value when it is added to a sum.
func TestSumDoesNotChangeItsQuantities(t *testing.T) {
	five := resource.MustParse("5")
	five.ToDec()
	shape := corev1.ResourceList{corev1.ResourceCPU: five}
	var use Use
	use.Add(3, shape)
	use.Add(2, shape)
	require.Equal(t, "25", use.CPU.String())
	require.Equal(t, "5", shape.Cpu().String())
}
