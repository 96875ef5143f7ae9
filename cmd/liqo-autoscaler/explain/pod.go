package explain

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Reason is why a pod has no node, or what a group does about it, in one word.
type Reason string

// The reasons of a pod; those from OnItsWay on are of node groups, too, best first.
const (
	Scheduled       Reason = "Scheduled"              // it has a node
	Finished        Reason = "Finished"               // it has ended
	Gated           Reason = "Gated"                  // a scheduling gate holds it
	NotSeen         Reason = "NotSeen"                // the scheduler has not found it unschedulable yet
	NotOffloaded    Reason = "NotOffloaded"           // Liqo offloads nothing of its namespace
	NoGroups        Reason = "NoGroups"               // no node group runs
	OnItsWay        Reason = "OnItsWay"               // a node that fits is being made
	NotRequestedYet Reason = "NotRequestedYet"        // a group could grow, and Cluster Autoscaler has not asked for that
	BackingOff      Reason = "BackingOff"             // Cluster Autoscaler leaves the group alone after a failure
	NoOffer         Reason = "NoOffer"                // no provider has room for a node of the group now
	AtMax           Reason = fleet.BlockAtMax         // max or the limits of all groups
	SpendingLimit   Reason = fleet.BlockSpendingLimit // a node would cost more than the group may spend
	Paused          Reason = fleet.BlockPaused        // an operator paused the group
	NoGroupFits     Reason = "NoGroupFits"            // the pod does not fit on a node of the group
	NotConfigured   Reason = "NotConfigured"          // the group has no spec yet
)

// order are the reasons of groups, best first.
var order = []Reason{OnItsWay, NotRequestedYet, BackingOff, NoOffer, SpendingLimit, AtMax, Paused, NoGroupFits,
	NotConfigured}

// What Liqo marks namespaces with that it offloads (Liqo pkg/consts/namespace_mapping.go).
const offloadedLabel, offloadedValue = "liqo.io/scheduling-enabled", "true"

// World is what is known of a pod's chances. Groups alone are required besides the pod.
type World struct {
	Pod       *corev1.Pod
	Namespace *corev1.Namespace
	Groups    []fleet.Snapshot
	// Market is what the providers offer now; nil when that could not be read.
	Market *market.Market
	// Status is the text of Cluster Autoscaler's status ConfigMap, Events are those of the pod.
	Status string
	Events []corev1.Event
	// Waits says what an instance waits for.
	Waits func(group string, i fleet.InstanceView) string
	// Notes are what could not be read.
	Notes []string
	Now   time.Time
}

// Pod is why a pod has no node.
type Pod struct {
	Pod     string `json:"pod"`
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Scheduler and ClusterAutoscaler are what these said of it last.
	Scheduler         string  `json:"scheduler,omitempty"`
	ClusterAutoscaler string  `json:"clusterAutoscaler,omitempty"`
	Groups            []Group `json:"groups,omitempty"`
	// Notes are what could not be read, and so was not considered.
	Notes []string `json:"notes,omitempty"`
}

// OfPod says why the pod has no node.
func OfPod(w World) Pod {
	p := Pod{Pod: w.Pod.Namespace + "/" + w.Pod.Name, ClusterAutoscaler: lastWord(w.Events), Notes: w.Notes}
	condition := scheduledCondition(w.Pod)
	if condition != nil && condition.Status != corev1.ConditionTrue {
		p.Scheduler = condition.Message
	}
	if p.Reason, p.Message = before(w, condition); p.Reason != "" {
		return p
	}
	status, err := readStatus(w.Status)
	if err != nil {
		p.Notes = append(p.Notes, err.Error())
	}
	for _, s := range w.Groups {
		p.Groups = append(p.Groups, w.group(s, status[s.Group]))
	}
	if p.Reason, p.Message = after(p.Groups); p.Reason == NoGroupFits && condition == nil {
		p.Message += "; the scheduler has not looked at it yet"
	}
	return p
}

// Pending makes of a manifest the pod that it would be: in an offloaded namespace, where Liqo adds a toleration, and
// found unschedulable.
func Pending(manifest *corev1.Pod) *corev1.Pod {
	pod := manifest.DeepCopy()
	pod.Namespace, pod.Name = cmp.Or(pod.Namespace, corev1.NamespaceDefault), cmp.Or(pod.Name, pod.GenerateName)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations,
		corev1.Toleration{Key: liqoTaint, Operator: corev1.TolerationOpExists})
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
		Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	return pod
}

// before is what keeps the pod from node groups at all.
func before(w World, condition *corev1.PodCondition) (Reason, string) {
	switch pod := w.Pod; {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return Finished, "it has ended, " + string(pod.Status.Phase)
	case pod.Spec.NodeName != "":
		return Scheduled, "it has a node, " + pod.Spec.NodeName
	case pod.DeletionTimestamp != nil:
		return Finished, "it is being deleted"
	case len(pod.Spec.SchedulingGates) > 0:
		return Gated, "the scheduling gate " + pod.Spec.SchedulingGates[0].Name + " holds it"
	case condition != nil && condition.Reason != corev1.PodReasonUnschedulable:
		return NotSeen, "the scheduler has not found it unschedulable: " + condition.Reason
	case w.Namespace != nil && w.Namespace.Labels[offloadedLabel] != offloadedValue:
		return NotOffloaded, fmt.Sprintf("namespace %s is not offloaded (it has no label %s=%s), so Liqo lets none of its "+
			"pods on virtual nodes: liqoctl offload namespace %s, and then create the pod again", pod.Namespace, offloadedLabel,
			offloadedValue, pod.Namespace)
	case len(w.Groups) == 0:
		return NoGroups, "no node group runs: does the gRPC server, and does Cluster Autoscaler call it?"
	}
	return "", ""
}

// after is the best that the groups have to say.
func after(groups []Group) (Reason, string) {
	for _, v := range order {
		for _, g := range groups {
			if g.Reason != v {
				continue
			}
			if v == NoGroupFits {
				return v, "it fits on the nodes of no node group"
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
