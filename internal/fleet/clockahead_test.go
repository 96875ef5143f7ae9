package fleet_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// aheadLedger returns a ledger that began with a correct clock. It also returns a function that answers the ledger's
// recoveries and returns their number.
func aheadLedger(t *testing.T, now time.Time) (l *fleet.Ledger, settle func(now time.Time) int) {
	t.Helper()
	l = fleet.NewLedger("standard", now)
	settle = func(now time.Time) (lists int) {
		for len(l.Commands.Open) > 0 {
			if l.Commands.Open[0].Kind == fleet.CommandRecover {
				lists++
			}
			l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone}}, now)
		}
		l.Step(fleet.GroupInput{}, now)
		return lists
	}
	settle(now)
	settle(now.Add(2 * time.Second))
	require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: &fleet.GroupSpec{Max: 100,
		InstanceSpec: fleet.InstanceSpec{ID: "standard"}}}, now))
	return l, settle
}

// A group began while a clock was ten minutes ahead. The clock was corrected, and the group was started again. The
// server has seen the epoch from the fast clock. The group therefore starts a later epoch, exactly once, and then
// books again.
func TestEpochOfAFastClockCausesOneNewEpoch(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	l, settle := aheadLedger(t, now)
	ahead, lists, refused := fleet.NewEpoch(now.Add(10*time.Minute)), 0, 0
	for n := range 60 {
		now = now.Add(time.Second)
		r := fleet.Request{Delta: 1, Seen: fleet.Position{Epoch: ahead, Revision: 7},
			Operation: fleet.Operation{ID: strconv.Itoa(n), GiveUpAt: now.Add(time.Minute)}}
		if l.Operate(fleet.Grow, r, now) != nil {
			refused++
		}
		lists += settle(now)
	}
	require.Equal(t, 1, lists)
	require.LessOrEqual(t, refused, 3)
	require.True(t, fleet.EpochBefore(ahead, l.Epoch))
	names := map[string]bool{}
	for _, e := range l.Entries {
		require.False(t, names[e.Name])
		names[e.Name] = true
	}
}

// A view from a driver that was started while the clock was ahead also causes exactly one new epoch.
func TestViewOfAFastClockCausesOneNewEpoch(t *testing.T) {
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	l, settle := aheadLedger(t, now)
	ahead := fleet.Generation{Epoch: fleet.NewEpoch(now.Add(10 * time.Minute)), Count: 3}
	l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: "standard-x-1", Generation: ahead, Sequence: 2,
		Phase: fleet.Peering}}}, now)
	lists := 0
	for range 60 {
		now = now.Add(time.Second)
		lists += settle(now)
	}
	require.Equal(t, 1, lists)
}
