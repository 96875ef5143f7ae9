package nodewatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/nodewatch"
)

// late reports Nodes that have not started yet. It counts the calls that stamp a Node.
type late struct {
	scripted
	started atomic.Bool
	calls   atomic.Int32
}

func (l *late) Restamp(ctx context.Context, a fleet.Attempt) error {
	l.calls.Add(1)
	if l.started.Load() {
		return l.scripted.Restamp(ctx, a)
	}
	return fmt.Errorf("the Node has a taint still: %w", backend.ErrNotYet)
}

// A Node that has not started receives its instance id as soon as it has started. Before that, nodewatch logs no
// warning and does not try to set the id.
func TestNodeIsStampedAfterItsStart(t *testing.T) {
	s := newScene(t)
	var watcher late
	var log testkit.Buffer
	tell := s.script(func(o *nodewatch.Options) {
		watcher.scripted = o.Watcher.(scripted)
		o.Watcher, o.CallEvery, o.Logger = &watcher, time.Hour, slog.New(slog.NewTextHandler(&log, nil))
	})
	found := s.ready("edge-t0-1")
	starting := found
	starting.Stamped, starting.Starting = false, true
	tell(found, starting)
	require.Equal(t, int32(1), watcher.calls.Load())
	require.Never(t, func() bool { return watcher.calls.Load() > 1 }, 20*waitTick, waitTick)
	watcher.started.Store(true)
	starting.Starting = false
	tell(starting)
	require.Equal(t, int32(2), watcher.calls.Load())
	require.NotContains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "has its instance id again")
}

// A backend does not report that a Node has started. nodewatch still tries to stamp the Node at intervals.
func TestStartingNodeIsTriedAgain(t *testing.T) {
	s := newScene(t)
	var watcher late
	tell := s.script(func(o *nodewatch.Options) {
		watcher.scripted = o.Watcher.(scripted)
		o.Watcher, o.CallEvery = &watcher, 5*waitTick
	})
	found := s.ready("edge-t0-1")
	starting := found
	starting.Stamped = false
	tell(found, starting)
	require.Eventually(t, func() bool { return watcher.calls.Load() >= 3 }, waitLimit, waitTick)
}
