package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A server is ready when it has read its groups and a worker polls their task queue. The error names the part that is
// missing. The server stays ready while Temporal reports no worker for less than a minute, and while the number of
// workers is unknown.
func TestServerIsReadyWithGroupsAndAWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var why, unknown atomic.Pointer[problem]
		value := func(p *atomic.Pointer[problem]) error {
			if of := p.Load(); of != nil {
				return of.error
			}
			return nil
		}
		f := newFake()
		f.failing["cpu"] = fleet.Refuse(fleet.RefusedNotInitialised, "nodegroup/cpu has not recovered yet")
		s, err := New(Options{Groups: f, Specs: specs("cpu"), Logger: quiet,
			Polled: func(context.Context) (error, error) { return value(&why), value(&unknown) }})
		require.NoError(t, err)
		require.ErrorContains(t, s.Ready(), "not all node groups")
		none := errors.New("no worker polls task queue liqo-autoscaler")
		why.Store(&problem{none})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.KeepWarm(ctx, nil); close(done) }()
		synctest.Wait()
		require.Equal(t, none, s.Ready(), "the reason that comes first")

		why.Store(nil)
		pass(10 * time.Second)
		require.ErrorContains(t, s.Ready(), "cpu has not recovered yet")
		f.set(func(f *fakeGroups) { delete(f.failing, "cpu") })
		pass(10 * time.Second)
		require.NoError(t, s.Ready())

		why.Store(&problem{none})
		pass(50 * time.Second)
		require.NoError(t, s.Ready())
		pass(50 * time.Second)
		require.Equal(t, none, s.Ready())
		unknown.Store(&problem{errors.New("Temporal is away")})
		why.Store(nil)
		pass(30 * time.Second)
		require.Equal(t, none, s.Ready(), "the number of workers is unknown")
		unknown.Store(nil)
		pass(10 * time.Second)
		require.NoError(t, s.Ready())
		cancel()
		<-done
	})
}

// A server that Cluster Autoscaler has never called reads the config automatically. After a failover in the middle of a
// loop, CA must find the same groups as at the start of the loop.
func TestReplicaThatWasNeverCalledFollowsTheConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		all := specs("cpu")
		var changed atomic.Bool
		s, err := New(Options{Groups: f, Specs: all, Logger: quiet, Reload: func() (Settings, bool, error) {
			return Settings{Specs: specs("cpu", "derived")}, changed.Swap(false), nil
		}})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.KeepWarm(ctx, nil); close(done) }()
		synctest.Wait()
		require.Nil(t, s.roster.Load().byID["derived"])
		changed.Store(true) // the market has become readable
		pass(refreshEvery + time.Second)
		require.NotNil(t, s.roster.Load().byID["derived"])
		cancel()
		<-done
	})
}

// When a server starts hundreds of new groups, it starts only a few groups concurrently. At the end all groups run.
func TestFirstStartIsStaggered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.slow = time.Second
		var ids []string
		for n := range 100 {
			ids = append(ids, fmt.Sprintf("g%d", n))
		}
		s, err := New(Options{Groups: f, Specs: specs(ids...), Logger: quiet})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.KeepWarm(ctx, nil); close(done) }()
		pass(1500 * time.Millisecond)
		require.LessOrEqual(t, f.called("configure"), 2*startParallel)
		require.Error(t, s.Ready())
		pass(time.Minute)
		require.NoError(t, s.Ready())
		require.Len(t, f.runs(), 100)
		cancel()
		<-done
	})
}
