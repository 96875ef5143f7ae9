package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The price limit of a new node is the lower of two limits: the limit in the booking, and the limit of the group.
func TestBookingLimitsThePriceOfItsNode(t *testing.T) {
	at := moment(t, "2026-11-10T00:00:00Z")
	for name, c := range map[string]struct{ maxPrice, cap, want float64 }{
		"nothing":             {},
		"the group's":         {maxPrice: 2, want: 2},
		"the booking's":       {cap: 1, want: 1},
		"the smaller booking": {maxPrice: 2, cap: 1, want: 1},
		"the smaller group's": {maxPrice: 2, cap: 3, want: 2},
		"as many millionths":  {maxPrice: 1, cap: 1e-6, want: 1e-6},
		"no booking's":        {maxPrice: 2, cap: -1, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := &fleet.Ledger{Group: "a", Epoch: "t0", Spec: storySpec()}
			l.Restore()
			l.Spec.MaxPrice = c.maxPrice
			r := fleet.Request{Delta: 1, PriceCap: c.cap, Operation: fleet.Operation{ID: "1", GiveUpAt: at.Add(time.Hour)}}
			require.NoError(t, l.Operate(fleet.Grow, r, at))
			l.Step(fleet.GroupInput{}, at)
			in := l.DriverInput(l.Commands.Open[0])
			require.Equal(t, c.want, in.Spec.MaxPrice)
			require.Equal(t, c.maxPrice, l.Spec.MaxPrice, "the group's own is as it was")
		})
	}
}

// A price is compared in millionths, because costs are counted in millionths.
func TestPriceIsComparedInMillionths(t *testing.T) {
	s := fleet.InstanceSpec{MaxPrice: 2}
	require.True(t, s.Pays(2))
	require.False(t, s.Pays(2.000001))
	require.True(t, fleet.InstanceSpec{}.Pays(1e9))
}
