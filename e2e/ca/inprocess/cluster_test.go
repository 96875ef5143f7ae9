//go:build externalgrpc

package inprocess

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"k8s.io/autoscaler/cluster-autoscaler/utils/taints"
)

// These are the labels by which the pods of these scenarios select nodes: the provider's region, and the provider
// itself.
const (
	region  = "topology.liqo.io/region"
	cluster = "liqo.io/remote-cluster-id"
)

var liqoTaint = corev1.Taint{Key: "virtual-node.liqo.io/not-allowed", Value: "true", Effect: corev1.TaintEffectNoExecute}

// machine returns a node of the cluster itself.
func machine(name, cpu string, created time.Time) *corev1.Node {
	return newNode(name, created, nil, corev1.ResourceList{"cpu": resource.MustParse(cpu),
		"memory": resource.MustParse("4Gi"), "pods": resource.MustParse("110")})
}

// virtualNode returns the Node that the worker and Liqo create for an instance (activities/backend/liqo/virtualnode.go,
// Liqo pkg/virtualKubelet/liqoNodeProvider/setup.go). The Node has those labels of its provider that the group
// declares.
func virtualNode(e *fleet.Entry, provider string, created time.Time) *corev1.Node {
	l := map[string]string{
		"kubernetes.io/role": "agent", "liqo.io/type": "virtual-node", cluster: provider,
		"storage.liqo.io/available":      "false",
		corev1.LabelNodeExcludeBalancers: "true", "alpha.service-controller.kubernetes.io/exclude-balancer": "true",
	}
	maps.Copy(l, e.Spec.NodeLabels())
	n := newNode(nodeName(e.Name), created, l, e.Spec.Shape.DeepCopy())
	n.Spec.ProviderID = e.AttemptRef().InstanceID()
	n.Spec.Taints = append([]corev1.Taint{liqoTaint}, e.Spec.NodeTaints()...)
	return n
}

func nodeName(instance string) string { return fleet.ObjectName(instance, 1) }

func newNode(name string, created time.Time, more map[string]string, size corev1.ResourceList) *corev1.Node {
	l := map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	maps.Copy(l, more)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l, CreationTimestamp: metav1.NewTime(created)},
		Status: corev1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created)}}},
	}
}

func (w *world) addNode(n *corev1.Node) {
	_, err := w.kube.CoreV1().Nodes().Create(w.ctx, n, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// removeNode removes a Node if it exists. Its pods become pending, because their Deployments create them again.
func (w *world) removeNode(name string) {
	w.clear(name)
	if err := w.kube.CoreV1().Nodes().Delete(w.ctx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		require.NoError(w.t, err)
	}
}

func (w *world) clear(node string) {
	for _, p := range w.listPods() {
		if p.Spec.NodeName == node {
			p.Spec.NodeName, p.Status = "", unschedulable()
			w.updatePod(p)
		}
	}
}

// unready changes a Node in the same way as the node controller when the Node no longer reports.
func (w *world) unready(n *corev1.Node) {
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(w.now())
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: effect})
	}
	_, err := w.kube.CoreV1().Nodes().Update(w.ctx, n, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// pods creates n pending pods of a Deployment. Each pod needs a whole node and has the toleration of Liqo's webhook for
// virtual nodes.
func (w *world) pods(name string, n int, change ...func(*corev1.PodSpec)) {
	for i := range n {
		p := newPod(fmt.Sprintf("%s-%d", name, i), "2", w.now())
		p.Status = unschedulable()
		for _, c := range change {
			c(&p.Spec)
		}
		w.addPod(p)
	}
}

func newPod(name, cpu string, now time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "demo", UID: types.UID("uid-" + name),
			CreationTimestamp: metav1.NewTime(now.Add(-time.Minute)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs-" + name, UID: "rs",
				Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName,
			Tolerations: []corev1.Toleration{
				{Key: liqoTaint.Key, Operator: corev1.TolerationOpExists, Effect: liqoTaint.Effect}},
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}},
	}
}

func unschedulable() corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
}

// selecting changes a pod in the same way as Liqo's webhook for a NamespaceOffloading with --selector key=value and the
// strategy LocalAndRemote.
func selecting(key, value string) func(*corev1.PodSpec) {
	term := func(key string, operator corev1.NodeSelectorOperator, value string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: operator, Values: []string{value}}}}
	}
	return func(s *corev1.PodSpec) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				term(key, corev1.NodeSelectorOpIn, value), term("liqo.io/type", corev1.NodeSelectorOpNotIn, "virtual-node")}}}}
	}
}

// small gives a pod a small request, so that many fit on a node.
func small(s *corev1.PodSpec) { s.Containers[0].Resources.Requests["cpu"] = resource.MustParse("100m") }

func intolerant(s *corev1.PodSpec) { s.Tolerations = nil }

func (w *world) addPod(p *corev1.Pod) {
	_, err := w.kube.CoreV1().Pods(p.Namespace).Create(w.ctx, p, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

func (w *world) updatePod(p *corev1.Pod) {
	_, err := w.kube.CoreV1().Pods(p.Namespace).Update(w.ctx, p, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// finish deletes the pods of a Deployment.
func (w *world) finish(name string) {
	for _, p := range w.listPods() {
		if strings.HasPrefix(p.Name, name+"-") {
			require.NoError(w.t, w.kube.CoreV1().Pods(p.Namespace).Delete(w.ctx, p.Name, metav1.DeleteOptions{}))
		}
	}
}

func (w *world) listPods() (out []*corev1.Pod) {
	list, err := w.kube.CoreV1().Pods("").List(w.ctx, metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range list.Items {
		list.Items[i].ManagedFields = nil // as CA's informers drop them
		out = append(out, &list.Items[i])
	}
	return out
}

func (w *world) listNodes() (out []*corev1.Node) {
	list, err := w.kube.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range list.Items {
		list.Items[i].ManagedFields = nil // as CA's informers drop them
		out = append(out, &list.Items[i])
	}
	return out
}

// schedule binds the pods that fit. It does only the part of a scheduler's work that these scenarios need.
func (w *world) schedule() {
	free, nodes, pods := map[string]int64{}, w.listNodes(), w.listPods()
	for _, n := range nodes {
		free[n.Name] = n.Status.Allocatable.Cpu().MilliValue()
	}
	for _, p := range pods {
		free[p.Spec.NodeName] -= cpuOf(p)
	}
	for _, p := range pods {
		n := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return admits(n, p) && free[n.Name] >= cpuOf(p) })
		if p.Spec.NodeName == "" && n >= 0 {
			p.Spec.NodeName, p.Status = nodes[n].Name, corev1.PodStatus{Phase: corev1.PodRunning}
			free[nodes[n].Name] -= cpuOf(p)
			w.updatePod(p)
		}
	}
}

func cpuOf(p *corev1.Pod) int64 { return p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue() }

func admits(n *corev1.Node, p *corev1.Pod) bool {
	for _, taint := range n.Spec.Taints {
		if !slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(&taint) }) {
			return false
		}
	}
	if p.Spec.Affinity == nil {
		return true
	}
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	return slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		e := t.MatchExpressions[0]
		r, err := labels.NewRequirement(e.Key, selection.Operator(strings.ToLower(string(e.Operator))), e.Values)
		return err == nil && r.Matches(labels.Set(n.Labels))
	})
}

// pending returns the number of waiting pods.
func (w *world) pending() (n int) {
	for _, p := range w.listPods() {
		if p.Spec.NodeName == "" {
			n++
		}
	}
	return n
}

// nodesOf returns the number of Nodes of a provider.
func (w *world) nodesOf(provider string) (n int) {
	for _, node := range w.listNodes() {
		if node.Labels[cluster] == provider {
			n++
		}
	}
	return n
}

// isLeaving reports whether CA has marked the Node for deletion.
func isLeaving(n *corev1.Node) bool { return taints.HasToBeDeletedTaint(n) }
