package events_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/events"
)

var market = types.NamespacedName{Namespace: "liqo-autoscaler", Name: "liqo-autoscaler-market-default"}

const enough = time.Minute // the limit for busy machines; the test measures no duration

func listEvents(t *testing.T, kube kubernetes.Interface, namespace string) []corev1.Event {
	t.Helper()
	list, err := kube.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// The function `until` waits for an Event with the reason. At that time all earlier Events have been processed.
func until(t *testing.T, kube kubernetes.Interface, namespace string, reason activities.Reason) []corev1.Event {
	t.Helper()
	var found []corev1.Event
	require.Eventually(t, func() bool {
		found = listEvents(t, kube, namespace)
		return slices.ContainsFunc(found, func(e corev1.Event) bool { return e.Reason == string(reason) })
	}, enough, 10*time.Millisecond)
	return found
}

func TestEventIsAboutTheNodeByName(t *testing.T) {
	kube := fake.NewClientset()
	shown := events.New(t.Context(), kube, market)
	shown.Record(activities.Event{Reason: activities.ReasonAttemptFailed, Node: "lca-std-e-1-1", Message: "Refused: no"})
	e := until(t, kube, "default", activities.ReasonAttemptFailed)[0]
	require.Equal(t, corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "lca-std-e-1-1", UID: "lca-std-e-1-1"},
		e.InvolvedObject, "so kubectl describe node finds it, as the kubelet's")
	require.Equal(t, "lca-std-e-1-1.attemptfailed", e.Name)
	require.Equal(t, corev1.EventTypeWarning, e.Type)
	require.Equal(t, "Refused: no", e.Message)
	require.Equal(t, events.Component, e.Source.Component)
}

// A step that this worker or another worker retries records no Event twice.
func TestRetriedStepRecordsNoEventTwice(t *testing.T) {
	kube := fake.NewClientset()
	first, second := events.New(t.Context(), kube, market), events.New(t.Context(), kube, market)
	joining := activities.Event{Reason: activities.ReasonJoining, Node: "lca-std-e-1-1", Message: "granted"}
	for range 3 {
		first.Record(joining)
	}
	first.Record(activities.Event{Reason: activities.ReasonNodeReady, Node: "lca-std-e-1-1"})
	until(t, kube, "default", activities.ReasonNodeReady)
	second.Record(joining)
	second.Record(joining)
	second.Record(activities.Event{Reason: activities.ReasonReleased, Node: "lca-std-e-1-1"})
	found := until(t, kube, "default", activities.ReasonReleased)
	require.Len(t, found, 3)
	for _, e := range found {
		require.EqualValues(t, 1, e.Count, e.Reason)
	}
	for _, a := range kube.Actions() {
		require.Contains(t, []string{"create", "list"}, a.GetVerb(), "the worker may not do more there")
	}
}

func TestEventWithoutANodeIsAboutTheMarket(t *testing.T) {
	kube := fake.NewClientset()
	shown := events.New(t.Context(), kube, market)
	shown.Record(activities.Event{Reason: activities.ReasonPeeringRemoved, Message: "peering with milan"})
	e := until(t, kube, market.Namespace, activities.ReasonPeeringRemoved)[0]
	require.Equal(t, corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: market.Namespace,
		Name: market.Name}, e.InvolvedObject)
	require.Equal(t, corev1.EventTypeNormal, e.Type)

	kube = fake.NewClientset()
	shown = events.New(t.Context(), kube, types.NamespacedName{})
	shown.Record(activities.Event{Reason: activities.ReasonPeeringRemoved})
	shown.Record(activities.Event{Reason: activities.ReasonNodeReady, Node: "lca-std-e-1-1"})
	require.Len(t, until(t, kube, "", activities.ReasonNodeReady), 1, "without a market only Nodes have Events")
}

// A burst of failures leads to a few Events and a few more requests. client-go's recorder combines similar failures
// into one Event with a count. After 25 requests about one object it drops most further failures.
func TestBurstOfFailuresLeadsToFewEvents(t *testing.T) {
	kube := fake.NewClientset()
	shown := events.New(t.Context(), kube, market)
	for n := range 150 {
		shown.Record(activities.Event{Reason: activities.ReasonInstanceFailed,
			Message: fmt.Sprintf("NoOffer: instance std-e-%d: no provider", n)})
	}
	shown.Record(activities.Event{Reason: activities.ReasonNodeReady, Node: "lca-std-e-151-1"})
	until(t, kube, "default", activities.ReasonNodeReady)
	require.LessOrEqual(t, len(listEvents(t, kube, market.Namespace)), 10)
	written := 0
	for _, a := range kube.Actions() {
		if a.GetVerb() != "list" {
			written++
		}
	}
	require.LessOrEqual(t, written, 40, "25 about one object, a few more on a slow machine, and the node's")
}

// Record does not block its caller when the API server does not answer or refuses the request.
func TestRecordDoesNotWaitForTheAPIServer(t *testing.T) {
	for name, hangs := range map[string]bool{"hangs": true, "refuses": false} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset()
			over := make(chan struct{})
			defer close(over)
			kube.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
				if hangs {
					<-over
				}
				return true, nil, errors.New("no")
			})
			shown := events.New(t.Context(), kube, market)
			for n := range 3000 { // more than the recorder's queues can hold
				shown.Record(activities.Event{Reason: activities.ReasonNodeReady, Node: fmt.Sprintf("lca-std-e-%d-1", n)})
			}
		})
	}
}
