package explain_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/explain"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

var bookedAt = time.Date(2027, 1, 1, 10, 0, 0, 0, time.UTC)

// triggered returns the Event of a pod. The parameter after is the time between the booking of the instance and this
// Event.
func triggered(pod string, after time.Duration, groups string) corev1.Event {
	return corev1.Event{Reason: "TriggeredScaleUp", Message: "pod triggered scale-up: [" + groups + "]",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: pod},
		FirstTimestamp: metav1.NewTime(bookedAt.Add(after)), LastTimestamp: metav1.NewTime(bookedAt.Add(after))}
}

// The page lists the pods whose Events name the instance's group and were written at about the booking time of the
// instance.
func TestPodsThatTriggeredTheScaleOutAreListed(t *testing.T) {
	const both = "{burst-a 0->2 (max: 10)} {burst 1->2 (max: 5)}"
	again, other, late := triggered("again", -time.Hour, both), triggered("node", 0, both), triggered("new", 0, both)
	again.LastTimestamp = metav1.NewTime(bookedAt.Add(time.Hour))
	other.InvolvedObject.Kind = "Node"
	late.FirstTimestamp, late.LastTimestamp, late.EventTime = metav1.Time{}, metav1.Time{}, metav1.NewMicroTime(bookedAt)
	refused := triggered("refused", 0, both)
	refused.Reason = "NotTriggerScaleUp"
	i := explain.OfInstance(fleet.InstanceName("burst", fleet.NewEpoch(bookedAt), 1), "", nil, "", nil)
	i.Triggered([]corev1.Event{triggered("web-1", 2*time.Second, both), triggered("web-0", 89*time.Second, both),
		triggered("web-0", time.Second, both), triggered("early", -31*time.Second, both), late,
		triggered("later", 91*time.Second, both), triggered("of-another", 0, "{burst-a 0->2 (max: 10)}"), again, other,
		refused})
	var pods []string
	for _, p := range i.TriggeredBy {
		pods = append(pods, p.Pod)
	}
	require.Equal(t, []string{"shop/again", "shop/new", "shop/web-0", "shop/web-1"}, pods)
	i.Notes = []string{"the events: forbidden"}
	var text bytes.Buffer
	require.NoError(t, i.Text(&text))
	require.Contains(t, text.String(), "\n  requested for pod shop/web-1 at 2027-01-01T10:00:02Z: pod triggered scale-up"+
		": [{burst-a 0->2 (max: 10)} {burst 1->2 (max: 5)}]\n")
	require.Contains(t, text.String(), "\nnot considered: the events: forbidden\n")
}

func TestAtMostFivePodsAreListed(t *testing.T) {
	var events []corev1.Event
	for n := range 8 {
		events = append(events, triggered(fmt.Sprint("web-", n), 0, "{burst 0->1 (max: 5)}"))
	}
	i := explain.OfInstance(fleet.InstanceName("burst", fleet.NewEpoch(bookedAt), 1), "", nil, "", nil)
	i.Triggered(events)
	require.Len(t, i.TriggeredBy, 5)
	require.Equal(t, 3, i.MoreTriggers)
	var text bytes.Buffer
	require.NoError(t, i.Text(&text))
	require.Contains(t, text.String(), "\n  and for 3 more pods\n")

	for _, name := range []string{"x", "x-1", "burst-!!-1", ""} {
		i := explain.OfInstance(name, "", nil, "", nil)
		i.Triggered(events)
		require.Empty(t, i.TriggeredBy, name)
	}
}
