package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const gpu = "nvidia.com/gpu"

// amounts returns amounts of CPU, of memory in Gi, and of further resources, each given as name and amount.
func amounts(cpu, memory string, more ...string) corev1.ResourceList {
	list := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	for i := 0; i < len(more); i += 2 {
		list[corev1.ResourceName(more[i])] = resource.MustParse(more[i+1])
	}
	return list
}

func node(name string, has corev1.ResourceList, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	n.Status.Allocatable = has
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, c := range change {
		c(n)
	}
	return n
}

func pod(name, on string, asks corev1.ResourceList, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{}}}
	p.Spec.NodeName = on
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: asks}}}
	p.Status.Phase = corev1.PodRunning
	for _, c := range change {
		c(p)
	}
	return p
}

func phase(is corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = is } }

// slice returns an accepted slice of a consumer.
func slice(consumer, hub string, granted corev1.ResourceList, change ...func(*Slice)) Slice {
	s := Slice{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "liqo-tenant-" + consumer,
		Labels: map[string]string{}}, Owner: consumer}
	if hub != "" {
		s.Labels[labelOurs], s.Labels[labelHub] = ours, hub
	}
	s.Spec.Resources, s.Status.Resources = granted, granted
	s.Status.Conditions = []sliceCondition{{Type: "Authentication", Status: accepted},
		{Type: conditionResources, Status: accepted}}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestGrantedAmountOfASlice(t *testing.T) {
	w := World{Slices: []Slice{slice("munich", "", amounts("2", "4Gi")), slice("munich", "east", amounts("1", "1Gi")),
		waiting("turin", amounts("1", "1Gi")), slice("", "", amounts("9", "9Gi"))}}
	granted := w.Granted()
	require.Len(t, granted, 2)
	require.Equal(t, "cpu=3, memory=5Gi", renderAmounts(granted["munich"]))
	require.Empty(t, granted["turin"])
}

// The cluster has two nodes of 8 CPUs. Each case changes the cluster and lists the CPUs and GPUs that are then free for
// the consumer munich.
func TestFreeCapacityOfACluster(t *testing.T) {
	asks := amounts("2", "4Gi")
	for name, test := range map[string]struct {
		change    func(*World)
		cpu, gpus string
	}{
		"nothing runs": {func(*World) {}, "16", "0"},
		"a pod runs":   {func(w *World) { w.Pods = append(w.Pods, pod("p", "a", asks)) }, "14", "0"},
		"a pod is Pending": {func(w *World) {
			w.Pods = append(w.Pods, pod("p", "", asks, phase(corev1.PodPending)))
		}, "14", "0"},
		"a Job's pod has finished": {func(w *World) {
			w.Pods = append(w.Pods, pod("p", "a", asks, phase(corev1.PodSucceeded)),
				pod("q", "a", asks, phase(corev1.PodFailed)))
		}, "16", "0"},
		"an init container requests more": {func(w *World) {
			w.Pods = append(w.Pods, pod("p", "a", asks, func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Name: "i",
					Resources: corev1.ResourceRequirements{Requests: amounts("5", "1Gi")}}}
			}))
		}, "11", "0"},
		"a pod that Liqo brought counts with its slice": {func(w *World) {
			w.Pods = append(w.Pods, pod("p", "a", asks, broughtBy("turin")))
			w.Slices = append(w.Slices, slice("turin", "default", amounts("3", "4Gi")))
		}, "13", "0"},
		"another consumer's slice, granted a second ago and not used": {func(w *World) {
			w.Slices = append(w.Slices, slice("turin", "default", amounts("3", "4Gi")))
		}, "13", "0"},
		"the consumer's own holds are its own to subtract": {func(w *World) {
			w.Slices = append(w.Slices, slice("munich", "default", amounts("3", "4Gi")))
		}, "16", "0"},
		"the consumer's other slices are no holds of this offer": {func(w *World) {
			w.Slices = append(w.Slices, slice("munich", "", amounts("3", "4Gi")), slice("munich", "east", amounts("1", "1Gi")))
		}, "12", "0"},
		"a slice of Liqo's class without an answer will be granted": {func(w *World) {
			w.Slices = append(w.Slices, slice("turin", "", amounts("3", "4Gi"), func(s *Slice) {
				s.Status.Conditions, s.Status.Resources = nil, nil
			}))
		}, "13", "0"},
		"a slice of another class without an answer, and a denied one, hold nothing": {func(w *World) {
			w.Slices = append(w.Slices, slice("turin", "", amounts("3", "4Gi"), func(s *Slice) {
				s.Spec.Class, s.Status.Conditions, s.Status.Resources = "gold", nil, nil
			}), slice("turin", "", amounts("3", "4Gi"), func(s *Slice) { s.Status.Conditions[1].Status = "Denied" }))
		}, "16", "0"},
		"a negative request adds nothing": {func(w *World) {
			w.Slices = append(w.Slices, slice("turin", "", amounts("-3", "4Gi")))
		}, "16", "0"},
		"slices that this cluster requests are not offered": {func(w *World) {
			w.Slices = append(w.Slices, slice("", "default", amounts("3", "4Gi")))
		}, "16", "0"},
		"a cordoned node is not counted, nor what runs there": {func(w *World) {
			w.Nodes[0].Spec.Unschedulable = true
			w.Pods = append(w.Pods, pod("p", "a", asks))
		}, "8", "0"},
		"a node that is not Ready": {func(w *World) {
			w.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
		}, "8", "0"},
		"a virtual node, with what runs there": {func(w *World) {
			w.Nodes = append(w.Nodes, node("v", amounts("100", "100Gi")))
			w.Nodes[2].Labels[labelType] = virtualNode
			w.Pods = append(w.Pods, pod("p", "v", asks))
		}, "16", "0"},
		"a node with a taint, and one whose taint is tolerated": {func(w *World) {
			w.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}}
			w.Nodes[1].Spec.Taints = []corev1.Taint{{Key: gpu, Effect: "NoSchedule"}, {Key: "old", Effect: "PreferNoSchedule"}}
			w.Tolerations = []corev1.Toleration{{Key: gpu, Operator: "Exists"}}
		}, "8", "0"},
		"GPUs": {func(w *World) {
			w.Nodes = append(w.Nodes, node("g", amounts("8", "32Gi", gpu, "4")))
			w.Pods = append(w.Pods, pod("p", "g", amounts("1", "1Gi", gpu, "1")))
			w.Slices = append(w.Slices, slice("turin", "", amounts("1", "1Gi", gpu, "2")))
		}, "22", "1"},
		"requests exceed the capacity": {func(w *World) {
			for range 3 {
				w.Pods = append(w.Pods, pod("p", "", amounts("8", "1Gi"), phase(corev1.PodPending)))
			}
		}, "0", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := World{Nodes: []*corev1.Node{node("a", amounts("8", "32Gi", "pods", "110")),
				node("b", amounts("8", "32Gi", "pods", "110"))}}
			test.change(&w)
			before := w.Nodes[0].Status.Allocatable.DeepCopy()
			free := w.Free(Holder{"munich", "default"}, nil)
			require.Equal(t, test.cpu, free.Cpu().String())
			gpus := free[gpu]
			require.Equal(t, test.gpus, gpus.String())
			require.Equal(t, before, w.Nodes[0].Status.Allocatable, "nothing is changed")
		})
	}
}

func TestFreeKeepsTheReserve(t *testing.T) {
	w := World{Nodes: []*corev1.Node{node("a", amounts("8", "32Gi", "pods", "110"))},
		Pods: []*corev1.Pod{pod("p", "a", amounts("1", "1Gi"))}}
	free := w.Free(Holder{"munich", "default"}, amounts("2", "2Gi", gpu, "1"))
	require.Equal(t, "5", free.Cpu().String())
	require.Equal(t, "29Gi", free.Memory().String())
	require.Equal(t, "109", free.Pods().String(), "a pod takes its place")
	require.NotContains(t, free, corev1.ResourceName(gpu))
}

func TestLargestFreeNode(t *testing.T) {
	require.Nil(t, World{}.Largest())
	w := World{
		Nodes: []*corev1.Node{node("a", amounts("8", "32Gi")), node("b", amounts("6", "16Gi")),
			node("c", amounts("2", "4Gi")),
			node("d", amounts("99", "99Gi"), func(n *corev1.Node) { n.Spec.Unschedulable = true })},
		Pods: []*corev1.Pod{pod("p", "a", amounts("3", "1Gi"), func(p *corev1.Pod) { p.Labels[labelManagedBy] = shadowPod })},
	}
	largest := w.Largest()
	require.Equal(t, "6", largest.Cpu().String())
}

// TestArchitectureIsMeasured checks that an offer names the architecture of the usable nodes when they all have the
// same one. A label in the config has precedence.
func TestArchitectureIsMeasured(t *testing.T) {
	is := func(name string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Labels[corev1.LabelArchStable] = name }
	}
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	has := corev1.ResourceList{"cpu": resource.MustParse("4")}
	offered := func(own map[string]string, nodes ...*corev1.Node) map[string]string {
		offer := OfferConfig{Consumer: "munich"}
		offer.Spec.Labels = own
		return Config{Provider: "milan"}.Measure(World{Nodes: nodes}, offer).Labels
	}
	arm, amd := node("a", has, is("arm64")), node("b", has, is("amd64"))
	require.Equal(t, map[string]string{corev1.LabelArchStable: "arm64"},
		offered(nil, arm, node("c", has, is("amd64"), cordoned)))
	require.Empty(t, offered(nil, arm, amd))
	require.Empty(t, offered(nil, node("c", has), arm))
	require.Empty(t, offered(nil))
	own := map[string]string{corev1.LabelArchStable: "amd64"}
	require.Equal(t, own, offered(own, arm))
	shared := map[string]string{"country": "it"}
	require.Len(t, offered(shared, arm), 2)
	require.Len(t, shared, 1, "the labels of the configuration do not change")
}
