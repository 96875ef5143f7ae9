package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sixteen returns sixteen nodes of 4 CPUs, and one node of a control plane, which is not offered.
func sixteen() (w World) {
	for n := range 16 {
		w.Nodes = append(w.Nodes, node(fmt.Sprint("n", n), amounts("4", "16Gi", "pods", "110")))
	}
	w.Nodes = append(w.Nodes, node("cp", amounts("4", "16Gi", "pods", "110"), func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
		n.Labels["role"] = "cp"
	}))
	return w
}

// trimmed returns the pod in the form in which the agent keeps it.
func trimmed(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	kept, err := trim(p)
	require.NoError(t, err)
	return kept.(*corev1.Pod)
}

// onlyOn binds the pod to a node by affinity, as the controller of DaemonSets does.
func onlyOn(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{name}}}}}}}}
	}
}

// A pod without a node reduces the free capacity by its requests when one of the offered nodes could run it, and by
// nothing otherwise.
func TestPendingPodsTakeRoomOnlyWhereTheyCanStart(t *testing.T) {
	one := amounts("1", "1Gi")
	select1 := func(key, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{key: value} }
	}
	dedicated := func(w *World) {
		w.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: "Exists"}}
		for _, n := range w.Nodes[:16] {
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}
	}
	for name, test := range map[string]struct {
		asks   corev1.ResourceList
		change func(*corev1.Pod)
		world  func(*World)
		cpu    string
	}{
		"it fits on a node": {one, nil, nil, "63"},
		"it waits for a scheduling gate": {one, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		}, nil, "64"},
		"no node has so many CPUs":               {amounts("5", "1Gi"), nil, nil, "64"},
		"no node has its resource":               {amounts("1", "1Gi", gpu, "1"), nil, nil, "64"},
		"a DaemonSet's, for a node that is lent": {one, onlyOn("n3"), nil, "63"},
		"a DaemonSet's, for a node that is not":  {one, onlyOn("cp"), nil, "64"},
		"it selects a node that is not lent":     {one, select1("role", "cp"), nil, "64"},
		"it does not tolerate the taint of any":  {one, nil, dedicated, "64"},
		"it tolerates the taint": {one, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: "Exists"}}
		}, dedicated, "63"},
	} {
		t.Run(name, func(t *testing.T) {
			w := sixteen()
			p := pod("p", "", test.asks, phase(corev1.PodPending))
			if test.change != nil {
				test.change(p)
			}
			if test.world != nil {
				test.world(&w)
			}
			w.Pods = append(w.Pods, trimmed(t, p))
			free := w.Free(Holder{"munich", "default"}, nil)
			require.Equal(t, test.cpu, free.Cpu().String())
		})
	}
}

// A pod that is resized in place counts in the same way as for the scheduler.
func TestResizedPodCountsAsForTheScheduler(t *testing.T) {
	for name, test := range map[string]struct {
		asks, has, free string
		condition       corev1.PodCondition
	}{
		"to more than the node has": {"10", "1", "7", corev1.PodCondition{Type: corev1.PodResizePending,
			Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}},
		"to more, which waits": {"4", "1", "4", corev1.PodCondition{Type: corev1.PodResizePending,
			Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred}},
		"to less, which is under way": {"1", "6", "2", corev1.PodCondition{Type: corev1.PodResizeInProgress,
			Status: corev1.ConditionTrue}},
	} {
		t.Run(name, func(t *testing.T) {
			has := amounts(test.has, "1Gi")
			p := pod("p", "a", amounts(test.asks, "1Gi"), func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", AllocatedResources: has,
					Resources: &corev1.ResourceRequirements{Requests: has}}}
				p.Status.Conditions = []corev1.PodCondition{test.condition}
			})
			w := World{Nodes: []*corev1.Node{node("a", amounts("8", "32Gi"))}, Pods: []*corev1.Pod{trimmed(t, p)}}
			free := w.Free(Holder{Consumer: "munich"}, nil)
			require.Equal(t, test.free, free.Cpu().String())
		})
	}
}

// broughtBy marks the pod as a pod that Liqo has created for a consumer.
func broughtBy(consumer string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[labelManagedBy], p.Labels[labelPodOrigin] = shadowPod, consumer }
}

// ending marks the pod as deleted. Such a pod exists until its containers have ended.
func ending(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }

// Of the cluster's 8 CPUs, each consumer uses the larger of two amounts: its slices' grants, and its pods' requests.
// The containers of a deleted slice still run until the end of their grace period.
func TestPodsOfADeletedSliceStillTakeRoom(t *testing.T) {
	of := func(consumer, cpu string) *corev1.Pod {
		return pod("p", "a", amounts(cpu, "1Gi"), broughtBy(consumer), ending)
	}
	for name, test := range map[string]struct {
		pods   []*corev1.Pod
		slices []Slice
		cpu    string
	}{
		"another consumer's, without a slice": {[]*corev1.Pod{of("turin", "2")}, nil, "6"},
		"its own, without a slice":            {[]*corev1.Pod{of("munich", "2")}, nil, "6"},
		"another consumer's, in its slice": {[]*corev1.Pod{of("turin", "2")},
			[]Slice{slice("turin", "", amounts("3", "4Gi"))}, "5"},
		"another consumer's, more than its slices": {[]*corev1.Pod{of("turin", "2"), of("turin", "3")},
			[]Slice{slice("turin", "", amounts("3", "4Gi"))}, "3"},
		"its own, in its hold": {[]*corev1.Pod{of("munich", "2")},
			[]Slice{slice("munich", "default", amounts("3", "4Gi"))}, "8"},
		"its own, more than its hold": {[]*corev1.Pod{of("munich", "5")},
			[]Slice{slice("munich", "default", amounts("3", "4Gi"))}, "6"},
		"of two consumers, neither in the other's slice": {[]*corev1.Pod{of("rome", "2")},
			[]Slice{slice("turin", "", amounts("3", "4Gi"))}, "3"},
		"of an unknown consumer": {[]*corev1.Pod{pod("p", "a", amounts("2", "1Gi"), func(p *corev1.Pod) {
			p.Labels[labelManagedBy] = shadowPod
		})}, nil, "6"},
		"ended": {[]*corev1.Pod{pod("p", "a", amounts("2", "1Gi"), broughtBy("turin"),
			phase(corev1.PodSucceeded))}, nil, "8"},
	} {
		t.Run(name, func(t *testing.T) {
			w := World{Nodes: []*corev1.Node{node("a", amounts("8", "32Gi", "pods", "110"))}, Slices: test.slices}
			for _, p := range test.pods {
				w.Pods = append(w.Pods, trimmed(t, p))
			}
			free := w.Free(Holder{"munich", "default"}, nil)
			require.Equal(t, test.cpu, free.Cpu().String())
		})
	}
}

// The pods of a deleted slice still run. Their capacity is not granted again, and the share of another consumer does
// not change.
func TestRoomOfPodsOfADeletedSliceIsNotGranted(t *testing.T) {
	w := World{Nodes: []*corev1.Node{node("a", amounts("8", "32Gi", "pods", "110"))},
		Pods: []*corev1.Pod{pod("p", "a", amounts("8", "8Gi"), broughtBy("munich"), ending)}}
	config := Config{Shares: SharesEqual, Offers: []OfferConfig{{Consumer: "munich"}, {Consumer: "turin"}}}
	v := config.Judge(w, waiting("turin", amounts("1", "1Gi")), Tenant{"turin", tenantActive})
	require.Equal(t, Decision{Reason: reasonFull, Message: "not free on this provider: cpu 0 of 1"}, v)
	bound := config.bound(w, config.Offers[1])
	require.Equal(t, "4", bound.Cpu().String())
}
