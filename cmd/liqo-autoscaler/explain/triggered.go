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

// These constants bound the time between the booking of an instance and Cluster Autoscaler's event about it. The clocks
// may differ, and Cluster Autoscaler requests nodes of several groups before it writes events.
const (
	triggeredBefore = 30 * time.Second
	triggeredAfter  = 90 * time.Second
)

// maxTriggers is the maximum number of listed pods.
const maxTriggers = 5

// Triggered adds the pods for which Cluster Autoscaler requested the instance. An event names only groups, so Triggered
// adds all pods for which CA requested nodes of the group around the booking of the instance. If two requests follow
// each other shortly, the pods of both are listed for both.
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

// booking parses an instance's name and returns its node group and its booking time.
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
