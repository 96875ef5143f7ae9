// Package boundpod finds out why a pod that is bound to a virtual node does not run there. It reads only objects of the
// consumer cluster, because Liqo copies the status and the Events of the provider's pod to the consumer's pod.
package boundpod

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Verdict names the reason for which a bound pod does not run.
type Verdict string

// These constants are the verdicts. The function Of returns a verdict together with a text, which quotes the
// provider's message if one is known.
const (
	// RefusedByProvider means that the provider's API server refuses the pod, for example because of a policy, a
	// quota of the namespace or a webhook.
	RefusedByProvider Verdict = "RefusedByProvider"
	// HoldsNoQuota means that Liqo on the provider refuses the pod because the node's quota is used up. Liqo's quota also
	// counts ended pods.
	HoldsNoQuota Verdict = "HoldsNoQuota"
	// PendingOnProvider means that the provider's scheduler finds no node for the pod.
	PendingOnProvider Verdict = "PendingOnProvider"
	// NotStarting means that a container has not started yet, for example because its image cannot be pulled.
	NotStarting Verdict = "NotStarting"
	// Restarting means that a container ends repeatedly.
	Restarting Verdict = "Restarting"
	// NotOffloaded means that the pod is bound to a virtual node although its namespace is not offloaded.
	NotOffloaded Verdict = "NotOffloaded"
)

// Verdicts lists all verdicts about pods that Liqo offloads.
var Verdicts = []Verdict{RefusedByProvider, HoldsNoQuota, PendingOnProvider, NotStarting, Restarting}

// LabelOffloaded is the label of each pod of the consumer that Liqo offloads, even if the provider refuses the pod
// (Liqo pkg/consts/replication.go, LocalPodLabelKey). ValueOffloaded is the value of this label.
const (
	LabelOffloaded = "liqo.io/shadowPod"
	ValueOffloaded = "true"
)

// These constants are texts that Liqo writes (pkg/virtualKubelet/forge/pods.go and events.go;
// pkg/webhooks/shadowpod/peeringinfo.go).
const (
	reasonBackOff = "OffloadingBackOff"
	reasonAborted = "OffloadingAborted"
	eventFailed   = "FailedReflection"
	quotaUsed     = "quota usage exceeded"
)

// Of returns the verdict about a bound pod, and a text that explains the verdict. events are the pod's Events, or
// nil. Without Events, the text about a refusal does not contain the provider's message. The verdict is empty for a
// pod that has ended or is being deleted, and for a pod in which no container has a problem.
func Of(pod *corev1.Pod, events []corev1.Event) (Verdict, string) {
	status := &pod.Status
	switch {
	case status.Reason == reasonBackOff || status.Reason == reasonAborted:
		return NotOffloaded, fmt.Sprintf("Liqo offloads no pods of namespace %s, and this pod tolerates the taint of "+
			"virtual nodes (%s)", pod.Namespace, status.Reason)
	case status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil:
		return "", ""
	}
	for _, c := range status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return PendingOnProvider, cmp.Or(c.Message, "the provider's scheduler has found no node for it")
		}
	}
	containers := append(append([]corev1.ContainerStatus{}, status.InitContainerStatuses...), status.ContainerStatuses...)
	if len(containers) == 0 {
		return refused(status, events)
	}
	for _, c := range containers {
		if verdict, why := ofContainer(c); verdict != "" {
			return verdict, why
		}
	}
	return "", ""
}

// refused returns the verdict about a pod for which the provider has written no status.
func refused(status *corev1.PodStatus, events []corev1.Event) (Verdict, string) {
	last := lastEvent(events, func(e *corev1.Event) bool { return e.Reason == eventFailed })
	switch {
	case last == nil && status.Phase != corev1.PodPending:
		return "", ""
	case last == nil:
		return RefusedByProvider, "the provider's pod does not exist yet, and no Event of this pod has the reason"
	case strings.Contains(last.Message, quotaUsed):
		return HoldsNoQuota, last.Message
	}
	return RefusedByProvider, last.Message
}

// ofContainer returns the verdict about one container. It returns "" if the container runs or has ended with exit
// code 0. A container that has restarted and is not ready has the verdict Restarting.
func ofContainer(c corev1.ContainerStatus) (Verdict, string) {
	ended := c.LastTerminationState.Terminated
	waiting := c.State.Waiting
	switch {
	case waiting == nil && (c.State.Terminated == nil || c.State.Terminated.ExitCode == 0) && (c.Ready || ended == nil):
		return "", ""
	case ended == nil && c.State.Terminated != nil:
		return Restarting, fmt.Sprintf("container %s has ended: %s", c.Name, ending(c.State.Terminated))
	case ended != nil:
		now := "has started again"
		if waiting != nil {
			now = "waits: " + waiting.Reason
		}
		return Restarting, fmt.Sprintf("container %s %s; restarts %d, the last run ended: %s", c.Name, now, c.RestartCount,
			ending(ended))
	}
	why := cmp.Or(waiting.Reason, "it has not started")
	if waiting.Message != "" {
		why += ": " + waiting.Message
	}
	return NotStarting, fmt.Sprintf("container %s waits: %s", c.Name, why)
}

// ending returns a text with the exit code, the reason and the message of a container that has ended.
func ending(t *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", t.ExitCode)
	if t.Reason != "" {
		text += ", " + t.Reason
	}
	if t.Message != "" {
		text += ": " + t.Message
	}
	return text
}

// LastRemote returns the reason and the message of the newest Event that the provider's cluster has written about its
// copy of the pod. It returns "" if such an Event does not exist. Liqo copies these Events and appends "(remote)" to
// their source (pkg/virtualKubelet/reflection/event/event.go).
func LastRemote(events []corev1.Event) string {
	last := lastEvent(events, func(e *corev1.Event) bool { return strings.HasSuffix(e.Source.Component, " (remote)") })
	if last == nil {
		return ""
	}
	return last.Reason + ": " + last.Message
}

func lastEvent(events []corev1.Event, is func(*corev1.Event) bool) (last *corev1.Event) {
	for n := range events {
		e := &events[n]
		if is(e) && (last == nil || !e.LastTimestamp.Before(&last.LastTimestamp)) {
			last = e
		}
	}
	return last
}
