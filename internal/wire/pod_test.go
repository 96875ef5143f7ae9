package wire_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/component-helpers/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wire"
)

// random returns a random pod with init containers, sidecars, overhead and pod-level resources.
func random(rng *rand.Rand) *corev1.Pod {
	list := func() corev1.ResourceList {
		l := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi"} {
			if rng.IntN(2) == 0 {
				l[name] = *resource.NewMilliQuantity(rng.Int64N(1e7), resource.DecimalSI)
			}
		}
		return l
	}
	containers := func() (all []corev1.Container) {
		for n := range rng.IntN(4) {
			c := corev1.Container{Name: fmt.Sprint("c", n), Image: "image", Resources: corev1.ResourceRequirements{
				Requests: list(), Limits: list()}}
			if always := corev1.ContainerRestartPolicyAlways; rng.IntN(3) == 0 {
				c.RestartPolicy = &always
			}
			all = append(all, c)
		}
		return all
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{Containers: containers(), InitContainers: containers(), Overhead: list(),
			Volumes: []corev1.Volume{{Name: "v"}}}}
	if rng.IntN(3) == 0 {
		pod.Spec.Resources = &corev1.ResourceRequirements{Requests: list(), Limits: list()}
	}
	return pod
}

// PodResources decodes only a part of a pod. The result has the same requests as the whole pod.
func TestDecodedPodHasTheRequestsOfTheWholePod(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lean := &corev1.Pod{} // is overwritten for each pod
	for range 2000 {
		pod := random(rng)
		raw, err := pod.Marshal()
		require.NoError(t, err)
		require.NoError(t, wire.PodResources(raw, lean))
		want := helpers.PodRequests(pod, helpers.PodResourcesOptions{})
		got := helpers.PodRequests(lean, helpers.PodResourcesOptions{})
		require.Len(t, got, len(want))
		for name, quantity := range want {
			require.Zero(t, quantity.Cmp(got[name]), "%s: %v, want %v", name, got[name], quantity)
		}
	}
}

// TestQuantitiesWithLargeExponentsAreFast decodes quantities for which Kubernetes' parser would need minutes.
func TestQuantitiesWithLargeExponentsAreFast(t *testing.T) {
	field := func(number byte, value string) string { return string([]byte{number<<3 | 2, byte(len(value))}) + value }
	for text, want := range map[string]string{"10e2547483646": "1e18", "1e2147483647": "1e18", "-1E+999": "-1e18",
		"1e-2147483648": "0", "0e999999999": "0", "0.5e-100": "0", "1e3": "1e3", "2e99": "2e99", "5m": "5m"} {
		entry := field(1, "cpu") + field(2, field(1, text))
		raw := field(2, field(2, field(8, field(2, entry))))
		pod := &corev1.Pod{}
		require.NoError(t, wire.PodResources([]byte(raw), pod), text)
		got := pod.Spec.Containers[0].Resources.Requests["cpu"]
		require.Zero(t, got.Cmp(resource.MustParse(want)), "%s: %s", text, got.String())
	}
	raw := field(2, field(2, field(8, field(2, field(1, "cpu")+field(2, field(1, "1.2.3e9999"))))))
	require.ErrorContains(t, wire.PodResources([]byte(raw), &corev1.Pod{}), `quantity "1.2.3e9999"`)
}

// A pod that is too large is refused. Until the refusal, PodResources uses no more memory than for a pod of the
// permitted size.
func TestPodResourcesAreBounded(t *testing.T) {
	field := func(number byte, value []byte) []byte {
		var size []byte
		for n := len(value); ; n >>= 7 {
			if n < 0x80 {
				size = append(size, byte(n))
				break
			}
			size = append(size, byte(n)|0x80)
		}
		return append(append([]byte{number<<3 | 2}, size...), value...)
	}
	many := field(2, bytes.Repeat([]byte{2<<3 | 2, 0}, 4<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := wire.PodResources(many, &corev1.Pod{})
	runtime.ReadMemStats(&after)
	require.ErrorContains(t, err, "more than 500 containers")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))

	quantity := field(1, append(field(1, []byte("cpu")), field(2, field(1, bytes.Repeat([]byte("9"), 65)))...))
	err = wire.PodResources(field(2, field(2, field(8, quantity))), &corev1.Pod{})
	require.ErrorContains(t, err, "more than 64 characters")
	for _, raw := range [][]byte{{0xff}, {2<<3 | 2, 9, 1}, field(2, []byte{2<<3 | 2, 5})} {
		err = wire.PodResources(raw, &corev1.Pod{})
		require.ErrorContains(t, err, "malformed protobuf")
	}
}
