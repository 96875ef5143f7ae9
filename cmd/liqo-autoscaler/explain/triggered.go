package explain

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// ReasonTriggered is the reason of the event that Cluster Autoscaler writes about each pod of a scale-up, after it has
// requested the nodes (CA processors/status/eventing_scale_up_processor.go).
const ReasonTriggered = "TriggeredScaleUp"

// The booking of an instance is the time at which its group accepts the request. These constants limit the time
// between the booking and Cluster Autoscaler's event about the request. The event may seem to be earlier than the
// booking, because the clocks may differ. The event may be late, because Cluster Autoscaler requests nodes of several
// groups before it writes events.
const (
	triggeredBefore = 30 * time.Second
	triggeredAfter  = 90 * time.Second
)

// maxTriggers is the maximum number of pods that are listed.
const maxTriggers = 5

// Triggered adds the pods for which Cluster Autoscaler requested the instance. An event names a group and no
// instance. So Triggered adds all pods for which CA requested nodes of the group at about the time of the instance's
// booking. If CA requested nodes of the group twice at about this time, the pods of both requests are listed.
func (i *Instance) Triggered(events []corev1.Event) {
	group, booked, ok := booking(i.Name)
	if !ok {
		return
	}
	seen := map[string]bool{}
	var all []Trigger
	for n := range events {
		e := &events[n]
		pod := e.InvolvedObject.Namespace + "/" + e.InvolvedObject.Name
		first, last := times(e)
		if e.Reason != ReasonTriggered || e.InvolvedObject.Kind != "Pod" || seen[pod] || !names(e.Message, group) ||
			last.Before(booked.Add(-triggeredBefore)) || first.After(booked.Add(triggeredAfter)) {
			continue
		}
		seen[pod] = true
		all = append(all, Trigger{Pod: pod, At: last.UTC(), Message: e.Message})
	}
	slices.SortFunc(all, func(a, b Trigger) int { return strings.Compare(a.Pod, b.Pod) })
	i.TriggeredBy, i.MoreTriggers = all[:min(len(all), maxTriggers)], max(len(all)-maxTriggers, 0)
}

// booking returns the node group and the booking time that an instance's name contains.
func booking(instance string) (group string, at time.Time, ok bool) {
	group = fleet.GroupOfKey(instance)
	epoch, _, ok := fleet.ParseInstanceName(group, instance)
	if !ok {
		return "", at, false
	}
	at, ok = fleet.EpochTime(epoch)
	return group, at, ok
}

// times returns the first and the last time of an event.
func times(e *corev1.Event) (first, last time.Time) {
	first, last = e.FirstTimestamp.Time, e.LastTimestamp.Time
	if last.IsZero() {
		last = e.EventTime.Time
	}
	if first.IsZero() {
		first = last
	}
	return first, last
}

// scaledUp matches a node group in the message "pod triggered scale-up: [{burst 0->1 (max: 5)}]".
var scaledUp = regexp.MustCompile(`\{(\S+) \d+->\d+ \(max: \d+\)\}`)

func names(message, group string) bool {
	return slices.ContainsFunc(scaledUp.FindAllStringSubmatch(message, -1), func(m []string) bool { return m[1] == group })
}
