package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

func amount(a float64) *float64 { return &a }

func perNode(s *fleet.GroupSpec) *float64 {
	if s.Spending == nil {
		return nil
	}
	return s.Spending.PerNode
}

// A booking lets a node cost no more than it may, nor than its group's may.
func TestBookedWithinSpending(t *testing.T) {
	at := moment(t, "2026-11-10T00:00:00Z")
	for name, c := range map[string]struct{ perNode, cap, want *float64 }{
		"nothing":             {},
		"the group's":         {perNode: amount(2), want: amount(2)},
		"the booking's":       {cap: amount(1), want: amount(1)},
		"the smaller booking": {perNode: amount(2), cap: amount(1), want: amount(1)},
		"the smaller group's": {perNode: amount(2), cap: amount(3), want: amount(2)},
	} {
		t.Run(name, func(t *testing.T) {
			l := &fleet.Ledger{Group: "a", Epoch: "t0", Spec: storySpec()}
			l.Restore()
			if c.perNode != nil {
				l.Spec.Spending = &money.Spending{PerNode: c.perNode, Monthly: money.SpendingLimit{Hard: amount(100)}}
			}
			r := fleet.Request{Delta: 1, Operation: fleet.Operation{ID: "1", GiveUpAt: at.Add(time.Hour)}}
			if c.cap != nil {
				r.PriceCap = *c.cap
			}
			require.NoError(t, l.Operate(fleet.Grow, r, at))
			l.Step(fleet.GroupInput{}, at)
			in := l.DriverInput(l.Commands.Open[0])
			if c.want == nil {
				require.Nil(t, in.Spec.Spending)
				return
			}
			require.Equal(t, *c.want, *in.Spec.Spending.PerNode)
			require.Equal(t, c.perNode != nil, in.Spec.Spending.Monthly.Hard != nil, "the rest is as it was")
			require.Equal(t, c.perNode, perNode(l.Spec), "and so is the group's own")
		})
	}
}
