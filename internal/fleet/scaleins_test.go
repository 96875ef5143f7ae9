package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// manyReady returns a group of Ready instances: one is on rome, and the parameter onMilan is the number of instances
// on milan.
func manyReady(t *testing.T, onMilan int, now time.Time) (l *fleet.Ledger, names []string) {
	t.Helper()
	spec := spec()
	spec.ID, spec.Max = "a", 300
	l = fleet.NewLedger("a", now.Add(-time.Minute))
	var found []fleet.Found
	for seq := range onMilan + 1 {
		provider := "milan"
		if seq == onMilan {
			provider = "rome"
		}
		found = append(found, fleet.Found{
			Attempt: fleet.Attempt{Group: "a", Instance: fleet.InstanceName("a", "t0", 1000+seq), Number: 1,
				Provider: fleet.Provider{ID: provider}},
			Booking: &fleet.Booking{Spec: spec.InstanceSpec, BookedAt: now}, Slice: true, Virtual: true, Marked: true,
			Node:    true,
			Stamped: true, Ready: true,
		})
		names = append(names, found[seq].Attempt.Instance)
	}
	l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone, Found: found}},
		now)
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: spec}, now))
	return l, names
}

// scaleIns returns the number of running scale-ins by provider.
func scaleIns(l *fleet.Ledger) map[string]int {
	running := map[string]int{}
	for _, e := range l.Entries {
		if e.Driver.Kind == fleet.ScaleIn {
			running[e.Provider()]++
		}
	}
	return running
}

// Many scale-ins are stuck on one provider, more than a group may run concurrently. Scale-ins on another provider
// still start. Further scale-ins on the stuck provider start when the budgets of the earlier drains have expired.
func TestStuckScaleInsDelayNoOtherProvider(t *testing.T) {
	const stuck = 150
	now := time.Unix(2_000_000, 0)
	l, names := manyReady(t, stuck, now)
	op := fleet.Operation{ID: "1", GiveUpAt: now.Add(time.Second)}
	require.NoError(t, l.Operate(fleet.Release, fleet.Request{Operation: op, Names: names}, now))
	l.Step(fleet.GroupInput{}, now)
	require.Equal(t, map[string]int{"milan": 100, "rome": 1}, scaleIns(l))
	starts := l.Starts
	drained := now.Add(l.Spec.Budgets.WithDefaults().Drain.Duration)
	for _, at := range []time.Time{now, drained.Add(-time.Second)} {
		l.Step(fleet.GroupInput{}, at)
		require.Equal(t, starts, l.Starts, "those that run are counted")
	}
	l.Step(fleet.GroupInput{}, drained)
	require.Equal(t, map[string]int{"milan": stuck, "rome": 1}, scaleIns(l))
}

// All nodes of a dead provider are removed immediately, however many there are, because their forced drains wait for no
// slot. They do not delay a deletion on this provider, and a deletion does not delay them.
func TestLostNodesAreRemovedConcurrently(t *testing.T) {
	const lost, released, more = 150, 110, 3
	now := time.Unix(2_000_000, 0)
	l, names := manyReady(t, lost+released+more, now)
	round := int64(0)
	lose := func(names []string) {
		round++
		d := fleet.Differences{Round: fleet.RoundID{Number: round}, Revision: l.Revision}
		for _, name := range names {
			d.Lost = append(d.Lost, fleet.Loss{Instance: name, Attempt: 1, Reason: "its provider is gone"})
		}
		l.Step(fleet.GroupInput{Differences: &d}, now)
	}
	lose(names[:lost])
	require.Equal(t, map[string]int{"milan": lost}, scaleIns(l))
	op := fleet.Operation{ID: "1", GiveUpAt: now.Add(time.Second)}
	require.NoError(t, l.Operate(fleet.Release, fleet.Request{Operation: op, Names: names[lost : lost+released]}, now))
	l.Step(fleet.GroupInput{}, now)
	require.Equal(t, map[string]int{"milan": lost + 100}, scaleIns(l))
	lose(names[lost+released : lost+released+more])
	require.Equal(t, map[string]int{"milan": lost + 100 + more}, scaleIns(l))
}
