package grpcserver

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"k8s.io/utils/ptr"
)

// The function `during` calls `what` while the next Grow waits before its booking.
func during(f *fakeGroups, what func()) {
	f.set(func(f *fakeGroups) {
		f.onGrow = func() {
			f.set(func(f *fakeGroups) { f.onGrow = nil })
			what()
		}
	})
}

// A group is removed while it grows. The server does not treat the group as empty: if it closed the group's workflow,
// the new instance would be abandoned.
func TestGroupRemovedDuringGrowthStays(t *testing.T) {
	f := newFake()
	c, _, config := reloading(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5))
	during(f, func() {
		config.write("v2", spec("cpu", 0, 5))
		require.NoError(t, c.refresh())
	})
	require.NoError(t, c.increase("gpu", 1))
	require.Empty(t, f.ended())
	requireRetired(t, c, "gpu", 1)
}

// An IncreaseSize that waits while its group is removed books nothing.
func TestIncreaseOfARemovedGroupBooksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, config := newFake(), &fakeConfig{}
		s, err := New(config.options(f, specs("cpu", "gpu")...))
		require.NoError(t, err)
		d := direct{t, s}
		require.NoError(t, d.refresh())
		require.NoError(t, d.increase(time.Second, 1))

		g := s.roster.Load().byID["cpu"]
		require.True(t, g.turn.TryAcquire(1)) // another caller's mutation runs
		waiting := make(chan error, 1)
		go func() { waiting <- d.increase(5*time.Second, 1) }()
		synctest.Wait()
		config.write("v2", specs("gpu")...)
		require.NoError(t, d.refresh())
		g.turn.Release(1)
		requireCode(t, codes.FailedPrecondition, <-waiting)
		require.Equal(t, 1, f.target("cpu"))
	})
}

// A growth that began before the limits existed counts against the limits, too.
func TestRunningGrowthCountsAgainstNewLimits(t *testing.T) {
	f := newFake()
	c, _, config := reloading(t, f, spec("cpu", 0, 5), spec("gpu", 0, 5))
	during(f, func() {
		config.set(Settings{Specs: specs("cpu", "gpu"), Version: "v2", Limits: Limits{Nodes: ptr.To(3)}}, nil)
		require.NoError(t, c.refresh())
		requireCode(t, codes.Unavailable, c.increase("gpu", 2))
	})
	require.NoError(t, c.increase("cpu", 2))
	requireCode(t, codes.OutOfRange, c.increase("gpu", 2))
	require.NoError(t, c.increase("gpu", 1))
	require.Equal(t, 3, f.target("cpu")+f.target("gpu"))
}
