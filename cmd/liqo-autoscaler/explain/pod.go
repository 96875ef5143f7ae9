package explain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/boundpod"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// offloadedLabel and offloadedValue mark the namespaces that Liqo offloads (Liqo pkg/consts/namespace_mapping.go).
const offloadedLabel, offloadedValue = "liqo.io/scheduling-enabled", "true"

// Pod is the output document that explains why a pod has no node, or why it does not run on its node.
type Pod struct {
	Pod string `json:"pod"`
	// Object names the object of a manifest from which the pod comes.
	Object  string `json:"object,omitempty"`
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// WithToleration is the result for the same pod with the toleration of virtual nodes. It is set for a pod that lacks
	// only this toleration.
	WithToleration string `json:"withToleration,omitempty"`
	// Assumed is a condition on which the result depends and which was not checked.
	Assumed string `json:"assumed,omitempty"`
	// Node is the pod's node. Instance and Provider are set for a virtual node.
	Node     string `json:"node,omitempty"`
	Instance string `json:"instance,omitempty"`
	Provider string `json:"provider,omitempty"`
	// Scheduler and ClusterAutoscaler are the newest messages of these components about the pod. LastEvent is the newest
	// event about the pod's copy in the provider's cluster.
	Scheduler         string  `json:"scheduler,omitempty"`
	ClusterAutoscaler string  `json:"clusterAutoscaler,omitempty"`
	LastEvent         string  `json:"lastEvent,omitempty"`
	Groups            []Group `json:"groups,omitempty"`
	// Notes name the inputs that could not be read. The explanation does not consider them.
	Notes []string `json:"notes,omitempty"`
}

// OfPod explains why the pod has no node, or why it does not run on its node.
func OfPod(w World) Pod {
	p := Pod{Pod: w.Pod.Namespace + "/" + w.Pod.Name, ClusterAutoscaler: newestMessage(w.Events), Notes: w.Notes}
	if w.Planned != nil {
		p.Object = w.Planned.Object
		if w.Planned.Way == Created {
			p.Assumed = assumedCreated
		}
	}
	if w.Pod.Spec.NodeName != "" {
		p.bound(w)
		return p
	}
	condition := scheduledCondition(w.Pod)
	if condition != nil && condition.Status != corev1.ConditionTrue {
		p.Scheduler = condition.Message
	}
	if p.Reason, p.Message = reasonBeforeGroups(w, condition); p.Reason != "" {
		return p
	}
	status, err := readStatus(w.Status)
	if err != nil {
		p.Notes = append(p.Notes, err.Error())
	}
	for _, s := range w.Groups {
		p.Groups = append(p.Groups, w.group(s, status[s.Group]))
	}
	if p.Reason, p.Message = bestReason(p.Groups); p.Reason == NoGroupFits && condition == nil {
		p.Message += "; the scheduler has not considered it yet"
	}
	p.withoutWebhook(w)
	return p
}

// bound explains the state of a pod that has a node. Liqo copies the condition PodScheduled of the provider's pod into
// the pod's status.
func (p *Pod) bound(w World) {
	pod := w.Pod
	p.Node, p.LastEvent = pod.Spec.NodeName, boundpod.LastRemote(w.Events)
	for _, g := range w.Groups {
		for _, i := range g.Instances {
			if i.Attempt > 0 && fleet.ObjectName(i.Name, i.Attempt) == p.Node {
				p.Instance, p.Provider = i.Name, i.Provider
			}
		}
	}
	verdict, why := boundpod.Of(pod, w.Events)
	switch {
	case verdict != "":
		p.Reason, p.Message = Reason(verdict), why
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		p.Reason, p.Message = Finished, "it has ended, "+string(pod.Status.Phase)
		if words := strings.TrimSpace(pod.Status.Reason + " " + pod.Status.Message); words != "" {
			p.Message += ": " + words
		}
	case pod.DeletionTimestamp != nil:
		p.Reason, p.Message = Finished, "it is being deleted on node "+p.Node
	default:
		p.Reason, p.Message = Scheduled, "it has a node, "+p.Node
	}
}

// reasonBeforeGroups returns a reason for which the pod gets no node, independently of the groups. It returns "" if
// no such reason exists.
func reasonBeforeGroups(w World, condition *corev1.PodCondition) (Reason, string) {
	switch pod := w.Pod; {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return Finished, "it has ended, " + string(pod.Status.Phase)
	case pod.DeletionTimestamp != nil:
		return Finished, "it is being deleted"
	case w.neverRequested() != "":
		return NeverRequested, w.neverRequested()
	case len(pod.Spec.SchedulingGates) > 0:
		return Gated, "the scheduling gate " + pod.Spec.SchedulingGates[0].Name + " holds it"
	case condition != nil && condition.Reason != corev1.PodReasonUnschedulable:
		return NotSeen, "the scheduler has not found it unschedulable: " + condition.Reason
	case w.Namespace != nil && w.Namespace.Labels[offloadedLabel] != offloadedValue:
		return NotOffloaded, notOffloaded(pod)
	case len(w.Groups) == 0:
		return NoGroups, "no node group runs: does the gRPC server, and does Cluster Autoscaler call it?"
	}
	return "", ""
}

// notOffloaded explains a pod in a namespace that Liqo does not offload.
func notOffloaded(pod *corev1.Pod) string {
	text := fmt.Sprintf("namespace %s is not offloaded (it has no label %s=%s), ", pod.Namespace, offloadedLabel,
		offloadedValue)
	if ToleratesVirtualNodes(pod) {
		return text + "and the pod tolerates the taint of virtual nodes: Cluster Autoscaler may add a node for it, on " +
			"which " +
			"Liqo rejects it permanently; remove the toleration, or liqoctl offload namespace " + pod.Namespace
	}
	return text + "so Liqo does not allow its pods on virtual nodes: liqoctl offload namespace " + pod.Namespace +
		", and then create the pod again"
}

// bestReason returns the best reason of all groups according to the variable order, and the message of this reason.
func bestReason(groups []Group) (Reason, string) {
	for _, v := range order {
		for _, g := range groups {
			if g.Reason != v {
				continue
			}
			if v == NoGroupFits {
				return v, "it does not fit on the nodes of any node group"
			}
			return v, "node group " + g.Name + ": " + g.Message
		}
	}
	return NoGroups, "no node group is known"
}

func scheduledCondition(pod *corev1.Pod) *corev1.PodCondition {
	for n := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[n]; c.Type == corev1.PodScheduled {
			return c
		}
	}
	return nil
}

// withoutWebhook explains a pod that does not fit on any node, but would fit with the toleration of virtual nodes.
func (p *Pod) withoutWebhook(w World) {
	if w.Planned == nil || w.Planned.Way == Created || p.Reason != NoGroupFits || ToleratesVirtualNodes(w.Pod) {
		return
	}
	p.Message = inMemoryFitsNowhere
	if w.Planned.Way == DryRun {
		p.Message += unlessDryRun
	}
	w.Pod = w.Pod.DeepCopy()
	w.Pod.Spec.Tolerations = append(w.Pod.Spec.Tolerations, LiqoToleration)
	with := OfPod(w)
	p.WithToleration = string(with.Reason) + ": " + with.Message
	if with.Reason == NoGroupFits {
		p.WithToleration += ": " + with.Groups[0].Message
	}
}
