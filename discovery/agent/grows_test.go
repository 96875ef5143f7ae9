package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func gpus(n string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse("16"), "memory": resource.MustParse("64Gi"),
		"nvidia.com/gpu": resource.MustParse(n)}
}

// A provider without a GPU node offers the GPUs of the nodes that its autoscaler can add. growsTo is a total: added
// nodes change the offer only when the measured amount exceeds growsTo. The requests of the provider's own pods
// reduce the measured amount, but they never reduce the offer below growsTo. The grants of consumers reduce
// the offer in any case.
func TestGrowsToIsATotal(t *testing.T) {
	gpu := func(free corev1.ResourceList) string { q := free["nvidia.com/gpu"]; return q.String() }
	w := World{Nodes: []*corev1.Node{node("small", amounts("4", "16Gi"))},
		GrowsTo: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}, GrowsNode: gpus("4")}
	to := Holder{Consumer: "munich"}
	free := w.Free(to, nil)
	require.Equal(t, "8", gpu(free))
	require.Equal(t, "4", free.Cpu().String(), "a resource that is not in growsTo is as measured")
	largest := w.largestNodes(free)
	require.NotEmpty(t, largest)
	require.Equal(t, "16", largest[0].Cpu().String(), "a node may be as large as an added one")
	require.Equal(t, "4", gpu(largest[0]))

	w.Nodes = append(w.Nodes, node("gpu-1", gpus("4")))
	require.Equal(t, "8", gpu(w.Free(to, nil)), "the added node is not counted again")
	w.Nodes = append(w.Nodes, node("gpu-2", gpus("4")), node("gpu-3", gpus("4")))
	require.Equal(t, "12", gpu(w.Free(to, nil)), "there is more than was declared")
	w.Pods = []*corev1.Pod{pod("own", "gpu-3", gpus("4"))}
	require.Equal(t, "8", gpu(w.Free(to, nil)))

	offloaded := pod("theirs", "gpu-1", gpus("4"), func(p *corev1.Pod) {
		p.Labels = map[string]string{labelManagedBy: shadowPod, labelPodOrigin: "rome"}
	})
	w.Pods = []*corev1.Pod{offloaded}
	w.Nodes = w.Nodes[:2]
	require.Equal(t, "4", gpu(w.Free(to, nil)), "another consumer has four of the eight")
}

func TestConfigOfGrowth(t *testing.T) {
	const config = "provider: milan\noffers:\n- {consumer: munich, name: milan, credentials: {secretRef: {namespace: a, " +
		"name: b}}}\n"
	c, err := Parse([]byte(config + "growsTo: {cpu: 8}\ngrowsNode: {cpu: 4, memory: 8Gi}\n"))
	require.NoError(t, err)
	require.Equal(t, "8", c.GrowsTo.Cpu().String())
	for fields, says := range map[string]string{
		"growsTo: {cpu: 8}\n":                       "growsNode: is missing",
		"growsNode: {cpu: 8}\n":                     "growsTo: is missing",
		"growsTo: {cpu: -1}\ngrowsNode: {cpu: 1}\n": "growsTo.cpu",
	} {
		_, err := Parse([]byte(config + fields))
		require.ErrorContains(t, err, says)
	}
}
