package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// heartbeat beats in the background until stop is called, with the last stage as its detail, so that the Temporal UI
// shows what a step waits for. The returned context also ends when the activity is cancelled.
func heartbeat(ctx context.Context) (backend.Progress, func()) {
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
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				beat()
			}
		}
	})
	progress := func(s backend.Stage, m string) {
		mu.Lock()
		changed := s != stage
		stage, message = s, m
		mu.Unlock()
		if changed {
			activity.GetLogger(ctx).Debug("waiting", "stage", string(s), "message", m)
			beat()
		}
	}
	return progress, func() { close(done); running.Wait() }
}
