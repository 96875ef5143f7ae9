package backend

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// What was packed comes back the same, and an older worker's list that never was packed, too.
func TestPackAndBack(t *testing.T) {
	found := func(n int, booking *Booking) Found {
		return Found{Attempt: Attempt{Group: "a", Instance: fmt.Sprint("a-x-", n), Number: 1}, Booking: booking, Slice: true}
	}
	two, four := fleet.GroupSpec{ID: "a", Max: 2}, fleet.GroupSpec{ID: "a", Max: 4}
	at := time.Unix(7, 0)
	all := []Found{
		found(1, nil), found(2, &Booking{Spec: two, BookedAt: at}), found(3, &Booking{Spec: four, BookedAt: at.Add(1)}),
		found(4, &Booking{Spec: two, BookedAt: at.Add(2)}), found(5, nil), found(6, &Booking{Spec: four}),
	}
	packed := Pack(all)
	require.Empty(t, packed[3].Booking.Spec.ID, "it shares the spec of the second")
	require.Equal(t, all[1].Attempt.ObjectName(), packed[3].Booking.SpecOf)
	require.Equal(t, "a", all[3].Booking.Spec.ID, "what was given stays as it was")
	require.Equal(t, all, Unpack(packed))
	require.Equal(t, all, Unpack(all))
}
