package fleet_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func shape(cpu string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
}

func spec() fleet.GroupSpec {
	return fleet.GroupSpec{ID: "standard", Max: 4, Shape: shape("2"), Budgets: fleet.Budgets{Total: metav1.Duration{Duration: 10 * time.Minute}}}
}

// play drives an instance through events and returns the phases it went through.
func play(t *testing.T, i *fleet.Instance, now time.Time, events ...fleet.Event) []fleet.Phase {
	t.Helper()
	phases := []fleet.Phase{i.Phase}
	for _, ev := range events {
		if ev.Step == "" && (ev.Kind == fleet.Done || ev.Kind == fleet.Refused || ev.Kind == fleet.GaveUp) {
			ev.Step, ev.Attempt = i.Phase.Row().Step, i.Attempt
		}
		_, err := i.Apply(ev, now)
		require.NoError(t, err)
		phases = append(phases, i.Phase)
	}
	return phases
}

var (
	done    = fleet.Event{Kind: fleet.Done}
	chooseA = fleet.Event{Kind: fleet.Done, Offer: &fleet.Offer{Name: "a", Provider: "milan"}}
	chooseB = fleet.Event{Kind: fleet.Done, Offer: &fleet.Offer{Name: "b", Provider: "turin"}}
	leave   = fleet.Event{Kind: fleet.Leave}
	noRoom  = fleet.Event{Kind: fleet.Refused, Failure: &fleet.Failure{Code: fleet.CodeNoCapacity}, Free: shape("1")}
	refused = fleet.Event{Kind: fleet.Refused, Failure: &fleet.Failure{Code: fleet.CodeRefused, Message: "cordoned"}}
)

func TestInstanceLife(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", spec(), t0)
	require.True(t, i.Counts())
	require.Equal(t, []fleet.Phase{
		fleet.Pending, fleet.Discovering, fleet.Selecting, fleet.Peering, fleet.Joining, fleet.Ready, fleet.Draining, fleet.Unpeering, fleet.Released,
	}, play(t, &i, t0, done, done, chooseA, done, done, leave, done, done))
	require.Equal(t, 1, i.Attempt)
}

func TestRefusedProviderStartsTheNextLapAndIsOut(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", spec(), t0)
	play(t, &i, t0, done, done, chooseA, done)
	require.Equal(t, fleet.Joining, i.Phase)
	m, err := i.Apply(fleet.Event{Kind: fleet.Refused, Step: fleet.StepWaitForVirtualNode, Attempt: 1, Failure: refused.Failure}, t0)
	require.NoError(t, err)
	require.True(t, m.Undo, "what the attempt made must be undone")
	require.Equal(t, fleet.Discovering, i.Phase)
	require.Equal(t, map[string]string{"milan": "cordoned"}, i.Refused)
	play(t, &i, t0, done, chooseB, done, done)
	require.Equal(t, fleet.Ready, i.Phase)
	require.Equal(t, 2, i.Attempt)
	require.Nil(t, i.Failure, "a Ready instance has no failure")
}

func TestCapacityRefusalsEndAfterOneFreshDiscover(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", spec(), t0)
	play(t, &i, t0, done, done, chooseA, noRoom)
	require.Equal(t, fleet.Selecting, i.Phase)
	require.Contains(t, i.Free, "milan")
	require.Empty(t, i.Refused, "a full provider is not a bad one")
	play(t, &i, t0, refused) // nothing else fits
	require.Equal(t, fleet.Discovering, i.Phase)
	require.True(t, i.Again)
	require.Empty(t, i.Free)
	play(t, &i, t0, done, chooseA, noRoom)
	require.Equal(t, fleet.Failed, i.Phase)
	require.True(t, i.Counts(), "a failed instance counts until CA deletes it (I3)")
	require.Equal(t, fleet.StateCreating, i.View().State)
	require.NotNil(t, i.View().Failure)
}

func TestPastTheDeadlineThereIsNoNextLap(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", spec(), t0)
	play(t, &i, t0, done, done, chooseA)
	play(t, &i, i.Deadline(), refused)
	require.Equal(t, fleet.Failed, i.Phase)
}

func TestStaleEventsChangeNothing(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", spec(), t0)
	play(t, &i, t0, done, done, chooseA)
	before := i
	for _, ev := range []fleet.Event{
		{Kind: fleet.Done, Step: fleet.StepDiscover},
		{Kind: fleet.Refused, Step: fleet.StepPeer, Attempt: 2},
		{Kind: fleet.GaveUp, Step: fleet.StepWaitForVirtualNode, Attempt: 1},
	} {
		_, err := i.Apply(ev, t0)
		var stale *fleet.ErrStale
		require.ErrorAs(t, err, &stale)
		require.Equal(t, before, i)
	}
	_, err := i.Apply(fleet.Event{Kind: "nonsense"}, t0)
	require.Error(t, err)
}

func TestLostReadyInstanceStopsCountingAndIsForced(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", spec(), t0)
	play(t, &i, t0, done, done, chooseA, done, done, fleet.Event{Kind: fleet.Lost})
	require.Equal(t, fleet.Draining, i.Phase)
	require.True(t, i.Force)
	require.False(t, i.Counts())
	require.Equal(t, fleet.StateDeleting, i.View().State)
}

func TestCancelledScaleInIsStuckUntilAskedAgain(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", spec(), t0)
	play(t, &i, t0, done, done, chooseA, done, done, leave, fleet.Event{Kind: fleet.Cancelled})
	require.Equal(t, fleet.Draining, i.Phase)
	require.Equal(t, "cancelled", i.View().Stuck)
	require.False(t, i.Leave(), "it is leaving already: the unit is not given back twice")
	require.Empty(t, i.Stuck)
}

// With k offers no run has more than k+1 attempts, whatever happens, and every run ends.
func TestLapsAreFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		k := 1 + rng.IntN(4)
		i := fleet.NewInstance("standard-x-1", spec(), t0)
		play(t, &i, t0, done)
		steps := 0
		for i.Phase.Growing() {
			require.Less(t, steps, 200, "a run does not end")
			steps++
			ev := fleet.Event{Kind: fleet.Done, Step: i.Phase.Row().Step, Attempt: i.Attempt}
			if i.Phase == fleet.Selecting {
				var open []string
				for p := range k {
					name := string(rune('a' + p))
					_, out := i.Refused[name]
					_, full := i.Free[name]
					if !out && !full {
						open = append(open, name)
					}
				}
				if len(open) == 0 {
					ev.Kind = fleet.Refused
				} else {
					ev.Offer = &fleet.Offer{Provider: open[rng.IntN(len(open))]}
				}
			} else if i.Phase != fleet.Discovering {
				switch rng.IntN(3) {
				case 0:
					ev.Kind, ev.Failure = fleet.Refused, &fleet.Failure{Code: fleet.CodeNoCapacity}
				case 1:
					ev.Kind, ev.Failure = fleet.GaveUp, &fleet.Failure{Code: fleet.CodeTimeout}
				}
			}
			_, err := i.Apply(ev, t0)
			require.NoError(t, err)
		}
		require.LessOrEqual(t, i.Attempt, k+1)
	}
}
