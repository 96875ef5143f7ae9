package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// The server writes a message about the config into a group. The next revision publishes the message. The message stays
// after a new epoch, and disappears when the server clears it.
func TestNoticeIsPublishedWithTheNextRevision(t *testing.T) {
	l := ledger(t)
	notice := fleet.GroupNotice{Name: fleet.BlockChangeNotInForce, Message: "shape changed"}
	configure := func(n fleet.GroupNotice, seen fleet.Position) int64 {
		s := *l.Spec
		require.NoError(t, l.Operate(fleet.Configure, fleet.Request{Spec: &s, Notice: n, Seen: seen}, t0))
		require.Equal(t, n, l.Snapshot(t0).Notice)
		return l.Revision
	}
	before := l.Revision
	require.Equal(t, before+1, configure(notice, fleet.Position{}))
	require.Equal(t, before+1, configure(notice, fleet.Position{}), "said already")
	require.Equal(t, []fleet.GroupNotice{notice}, l.Snapshot(t0).Conditions(money.Balance{}, 0))

	behind := fleet.Request{Spec: l.Spec, Seen: fleet.Position{Epoch: l.Epoch, Revision: l.Revision + 9}}
	require.Error(t, l.Operate(fleet.Configure, behind, t0.Add(time.Hour)))
	require.Equal(t, notice, l.Snapshot(t0).Notice)

	l = ledger(t)
	configure(notice, fleet.Position{})
	before = l.Revision
	require.Equal(t, before+1, configure(fleet.GroupNotice{}, fleet.Position{}))
}

// Blocked returns a reason exactly when Operate would refuse a scale-out.
func TestBlocksAgreeWithOperate(t *testing.T) {
	hour := 0.3
	for name, change := range map[string]func(*fleet.Ledger){
		"":                func(*fleet.Ledger) {},
		fleet.BlockPaused: func(l *fleet.Ledger) { l.Paused = true },
		fleet.BlockAtMax:  func(l *fleet.Ledger) { require.NoError(t, operate(l, fleet.Grow, l.Spec.Max)) },
		fleet.BlockSpendingLimit: func(l *fleet.Ledger) {
			l.Spec.Spending = &money.Spending{Hourly: money.SpendingLimit{Hard: &hour}}
		},
	} {
		l := ledger(t)
		change(l)
		price := money.Of(0.5)
		require.Equal(t, name, l.Snapshot(t0).Blocked(l.Snapshot(t0).Cost.Balance(t0), price).Name)
		err := l.Operate(fleet.Grow, fleet.Request{Operation: fleet.Operation{ID: "x", GiveUpAt: t0.Add(time.Minute)},
			Delta: 1, PriceCap: price.Float()}, t0)
		require.Equal(t, name != "", err != nil, "%s: %v", name, err)
	}
	require.Empty(t, fleet.NewLedger("red", t0).Snapshot(t0).Conditions(money.Balance{}, 0), "not configured yet")
}
