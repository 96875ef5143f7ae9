package fleet_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func shape(cpu string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
}

func spec() *fleet.GroupSpec {
	return &fleet.GroupSpec{Max: 4, InstanceSpec: fleet.InstanceSpec{ID: "standard", Shape: shape("2"),
		Budgets: fleet.Budgets{Total: metav1.Duration{Duration: 10 * time.Minute}}}}
}

// play applies events to an instance. If an event ends a step, play sets the current step and attempt in the event.
func play(t *testing.T, i *fleet.Instance, events ...fleet.Event) {
	t.Helper()
	for _, ev := range events {
		switch ev.Kind {
		case fleet.Done, fleet.Again, fleet.Refused, fleet.GaveUp:
			ev.Step, ev.Attempt = i.Phase.Row().Step, i.Attempt
		}
		_, err := i.Apply(ev, t0)
		require.NoError(t, err)
	}
}

var (
	done    = fleet.Event{Kind: fleet.Done}
	chooseA = fleet.Event{Kind: fleet.Done, Offer: &fleet.Offer{Name: "a", Provider: "milan"}}
	chooseB = fleet.Event{Kind: fleet.Done, Offer: &fleet.Offer{Name: "b", Provider: "turin"}}
	refused = fleet.Event{Kind: fleet.Refused, Failure: &fleet.Failure{Code: fleet.CodeRefused, Message: "cordoned"}}
	full    = fleet.Event{Kind: fleet.Again, Failure: &fleet.Failure{Code: fleet.CodeNoCapacity}}
)

func TestRefusedProviderIsExcludedForTheInstance(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", &spec().InstanceSpec, t0)
	play(t, &i, done, done, chooseA, done, refused)
	require.Equal(t, fleet.Discovering, i.Phase)
	require.Equal(t, []string{"milan"}, i.Refused)
	play(t, &i, done, chooseB, done, done)
	require.Equal(t, fleet.Ready, i.Phase)
	require.Equal(t, 2, i.Attempt)
	require.Nil(t, i.Failure, "a Ready instance has no failure")
}

func TestFullProviderIsNotExcluded(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", &spec().InstanceSpec, t0)
	play(t, &i, done, done, chooseA, full)
	require.Equal(t, fleet.Discovering, i.Phase)
	require.Empty(t, i.Refused)
	play(t, &i, done, chooseA)
	require.Equal(t, 2, i.Attempt, "it uses up the attempt's number")
}

func TestFailedInstanceCountsAndShowsWhy(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", &spec().InstanceSpec, t0)
	play(t, &i, done, done, refused)
	require.True(t, i.Counts(), "until CA deletes it (I3)")
	require.Equal(t, fleet.StateCreating, i.Row().State)
	require.Equal(t, "cordoned", i.Row().Failure.Message)
}

// When an event reports the end of another step or of another attempt, the instance does not change. Data that it
// shares with a copy does not change either.
func TestStaleEventsChangeNothing(t *testing.T) {
	draining := fleet.NewInstance("standard-x-1", &spec().InstanceSpec, t0)
	play(t, &draining, done, done, chooseA, done, done, fleet.Event{Kind: fleet.Deleted})
	second := fleet.NewInstance("standard-x-2", &spec().InstanceSpec, t0)
	play(t, &second, done, done, chooseA, refused, done, chooseB, done)
	for _, c := range []struct {
		inst *fleet.Instance
		ev   fleet.Event
	}{
		{&draining, fleet.Event{Kind: fleet.Cancelled, Step: fleet.StepAcquire, Attempt: 1}},
		{&draining, fleet.Event{Kind: fleet.Deadline, Step: fleet.StepJoin, Attempt: 1}},
		{&draining, fleet.Event{Kind: fleet.Done, Step: fleet.StepJoin, Attempt: 1}},
		{&second, fleet.Event{Kind: fleet.Refused, Step: fleet.StepJoin, Attempt: 1}},
		{&second, fleet.Event{Kind: fleet.Cancelled, Step: fleet.StepJoin, Attempt: 1}},
		{&second, fleet.Event{Kind: fleet.GaveUp, Step: fleet.StepAcquire, Attempt: 2}},
	} {
		before, err := json.Marshal(c.inst)
		require.NoError(t, err)
		_, err = c.inst.Apply(c.ev, t0)
		require.ErrorIs(t, err, fleet.ErrStale, "%s of %s in %s", c.ev.Kind, c.ev.Step, c.inst.Phase)
		after, err := json.Marshal(c.inst)
		require.NoError(t, err)
		require.JSONEq(t, string(before), string(after))
	}
	_, err := draining.Apply(fleet.Event{Kind: "nonsense"}, t0)
	require.Error(t, err)
}

// Names of attempts are parsed. Other names are refused.
func TestParseObjectName(t *testing.T) {
	instance, attempt, ok := fleet.ParseObjectName("standard", fleet.ObjectName("standard-x-12", 3))
	require.True(t, ok)
	require.Equal(t, "standard-x-12", instance)
	require.Equal(t, 3, attempt)
	for _, name := range []string{"", "standard", "standard-x-1", "standard-x-1-", "lca-standard-x-1-0", "standard-x-1--1",
		"lca-standard-b-x-1-1", "lca-other-x-1-1"} {
		_, _, ok := fleet.ParseObjectName("standard", name)
		require.False(t, ok, "%s", name)
	}
}

// The row of an instance shows its state to CA. It shows the reason of a failure or loss to people.
func TestRowShowsStateAndReason(t *testing.T) {
	lost := &fleet.Failure{Code: fleet.CodeLost, Message: "gone"}
	timeout := &fleet.Failure{Code: fleet.CodeTimeout, Message: "late"}
	for _, row := range fleet.Machine {
		for _, leaving := range []bool{false, true} {
			for _, force := range []bool{false, true} {
				for _, failure := range []*fleet.Failure{nil, lost, timeout} {
					i := fleet.NewInstance("standard-x-1", &spec().InstanceSpec, t0)
					i.Phase, i.Leaving, i.Force, i.Failure = row.Phase, leaving, force, failure
					v := i.Row()
					require.Equal(t, row.Counts && !leaving, v.Counts)
					want := row.State
					if leaving {
						want = fleet.StateDeleting
					}
					require.Equal(t, want, v.State)
					switch {
					case row.Phase == fleet.Failed && !leaving && failure == nil:
						require.Equal(t, fleet.CodeInternal, v.Failure.Code)
					case row.Phase == fleet.Failed && !leaving, force && row.Phase.Shrinking() && failure == lost:
						require.Equal(t, failure, v.Failure)
					default:
						require.Nil(t, v.Failure, "%s %t %t", row.Phase, leaving, force)
					}
				}
			}
		}
	}
}

// NotReadySince is the time of the first report that the Node is not ready. It is cleared when the Node is ready again.
func TestNotReadySinceIsTheFirstReport(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", &spec().InstanceSpec, t0)
	i.Phase = fleet.Ready
	hear := func(kind fleet.EventKind, after time.Duration) {
		_, err := i.Apply(fleet.Event{Kind: kind}, t0.Add(after))
		require.NoError(t, err)
	}
	hear(fleet.NotReady, time.Second)
	hear(fleet.NotReady, time.Minute)
	require.Equal(t, t0.Add(time.Second), i.NotReadySince)
	hear(fleet.Registered, time.Hour)
	require.False(t, i.NotReady)
	require.Zero(t, i.NotReadySince)
	hear(fleet.NotReady, 2*time.Hour)
	require.Equal(t, t0.Add(2*time.Hour), i.NotReadySince)
}

// The test lists the views that the steps Select, Join and Return send.
func TestStepsSendTheirViews(t *testing.T) {
	v := fleet.View{Instance: "standard-x-1", Sequence: 3, Phase: fleet.Selecting, Attempt: 1, Stuck: "cancelled",
		Failure: &fleet.Failure{Code: fleet.CodeTimeout}}
	chosen := v.Chosen(fleet.Offer{Name: "m", Provider: "milan", Hourly: 2, MaxNodes: 7})
	require.Equal(t, fleet.Peering, chosen.Phase)
	require.Equal(t, 2, chosen.Attempt)
	require.Equal(t, &fleet.Offer{Name: "m", Provider: "milan", Hourly: 2}, chosen.Offer)
	require.Equal(t, fleet.EndNone, chosen.End)
	joined := v.Joined()
	require.Equal(t, []any{fleet.Ready, fleet.EndFinal}, []any{joined.Phase, joined.End})
	require.Nil(t, joined.Failure)
	returned := v.Returned()
	require.Equal(t, []any{fleet.Released, fleet.EndFinal}, []any{returned.Phase, returned.End})
	require.Empty(t, returned.Stuck)
}

// Each row of the table names the events that have an effect in its phase. For any other event, Apply returns an
// ignored move without an error, and changes nothing.
func TestEventOutsideTheTableIsIgnored(t *testing.T) {
	for _, row := range fleet.Machine {
		for _, kind := range fleet.EventKinds {
			i := fleet.NewInstance("standard-x-1", &spec().InstanceSpec, t0)
			i.Phase, i.Attempt = row.Phase, 3
			before := i
			m, err := i.Apply(fleet.Event{Kind: kind, Step: row.Step, Attempt: 3, Failure: &fleet.Failure{}}, t0.Add(1))
			require.NoError(t, err)
			_, named := row.Moves[kind]
			require.Equal(t, named, !m.Ignored, "%s in %s", kind, row.Phase)
			if !named {
				require.Equal(t, before, i, "%s in %s", kind, row.Phase)
			}
		}
	}
}

// Registered is true for every Ready instance, and for a joining instance whose Node carries the id.
func TestStampedInstanceIsRegistered(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", &spec().InstanceSpec, t0)
	play(t, &i, done, done, chooseA, done)
	require.Equal(t, fleet.Joining, i.Phase)
	require.False(t, i.Registered)
	play(t, &i, fleet.Event{Kind: fleet.Registered})
	require.True(t, i.Row().Registered)
	play(t, &i, done)
	require.True(t, i.Row().Registered)
	play(t, &i, fleet.Event{Kind: fleet.Deleted})
	require.False(t, i.Row().Registered)
}

// Refused contains a provider once, even if it has refused twice. A refusal without a chosen provider adds no entry.
func TestRefusedContainsAProviderOnce(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", &spec().InstanceSpec, t0)
	play(t, &i, done, done, chooseA, done, refused, done, chooseA, done, refused)
	require.Equal(t, []string{"milan"}, i.Refused)
	nobody := fleet.Event{Kind: fleet.Done, Offer: &fleet.Offer{}}
	play(t, &i, done, nobody, done, refused)
	require.Equal(t, []string{"milan"}, i.Refused)
}
