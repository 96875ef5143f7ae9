package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// errWorkerStops is why a step ends that goes on with another worker.
var errWorkerStops = errors.New("this worker stops; the step goes on with another")

// heartbeat beats in the background until stop is called, with the last stage as its detail, so that the Temporal UI
// shows what a step waits for. The returned context is what the step works under: it ends when the activity is cancelled
// and also when this worker is told to stop, so that another one takes the step over without waiting for the heartbeat
// timeout.
func heartbeat(ctx context.Context) (working context.Context, progress backend.Progress, stop func()) {
	var mu sync.Mutex
	stage, message := backend.Stage("starting"), ""
	beat := func() {
		mu.Lock()
		defer mu.Unlock()
		activity.RecordHeartbeat(ctx, string(stage), message)
	}
	interval := activity.GetInfo(ctx).HeartbeatTimeout / 4
	if interval <= 0 {
		interval = time.Second
	}
	working, end := context.WithCancelCause(ctx)
	stopping := activity.GetWorkerStopChannel(ctx)
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-stopping:
				end(errWorkerStops)
				stopping = nil
			case <-tick.C:
				beat()
			}
		}
	})
	progress = func(s backend.Stage, m string) {
		mu.Lock()
		changed := s != stage
		stage, message = s, m
		mu.Unlock()
		if changed {
			activity.GetLogger(ctx).Debug("waiting", "stage", string(s), "message", m)
			beat()
		}
	}
	return working, progress, func() { close(done); running.Wait(); end(nil) }
}
