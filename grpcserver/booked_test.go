package grpcserver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The result of an operation cannot be read, but the operation is booked. CA's loop stops until a read shows the
// result.
func TestUnreadableResultStopsCAsLoop(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) {
			f.onBooked = func(fleet.Request) { f.failing["cpu"] = errors.New("decode memo: broken") }
		})
		require.NoError(t, d.increase(time.Second, 2))
		requireCode(t, codes.Unavailable, d.refresh())
		f.set(func(f *fakeGroups) { f.failing = map[string]error{} })
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
	})
}

// An operation returns a position. A memo with an older position does not show this operation. The server ignores
// such a memo, and CA's loop stops until a newer memo exists. The group's workflow knows the position, so the group
// does not begin a new epoch.
func TestOlderMemoStopsCAsLoop(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		epoch := f.published("cpu").Epoch
		f.set(func(f *fakeGroups) { f.groups["cpu"].silent = true })
		require.NoError(t, d.increase(time.Second, 2))
		g := d.s.roster.Load().byID["cpu"]
		require.True(t, g.isDirty())
		require.Zero(t, g.picture.Load().Target)
		for range 3 {
			pass(time.Second)
			requireCode(t, codes.Unavailable, d.refresh())
		}
		f.set(func(f *fakeGroups) { f.groups["cpu"].silent = false; f.groups["cpu"].publish() })
		pass(time.Second)
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
		require.Equal(t, epoch, f.published("cpu").Epoch)
	})
}

// Every operation carries the newest position that the server has seen. A group whose history was reverted detects
// this by the position.
func TestOperationsCarryTheNewestPosition(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		var named []fleet.Position
		for range 2 {
			f.set(func(f *fakeGroups) { f.onBooked = func(r fleet.Request) { named = append(named, r.Seen) } })
			before := d.s.roster.Load().byID["cpu"].seen()
			require.NoError(t, d.increase(time.Second, 1))
			require.Equal(t, before, named[len(named)-1])
		}
		require.True(t, named[0].Before(named[1]))
	})
}
