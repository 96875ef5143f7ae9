package activities

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// PassBound limits the time that one pass of a step spends in one stage. A whole pass may take twice that time, and
// the timeout of its activity is longer. With a shorter PassBound no pass would finish on a slow provider, because
// each pass starts from the beginning.
const PassBound = 4 * time.Second

// maxGap is the longest time between two beats that counts as spent. If the gap is longer, no worker ran the step in
// the meantime.
const maxGap = 10 * time.Second

// Beat is the content of a step's heartbeats: the reason for the present wait, and the step's clock. The clock starts
// with the first pass and continues with the next pass, in any worker.
type Beat struct {
	Stage   string        `json:"stage"`
	Message string        `json:"message,omitempty"`
	Spent   time.Duration `json:"spent,omitempty"`
	// Network is the part of Spent in stages of the network.
	Network time.Duration `json:"network,omitempty"`
	At      time.Time     `json:"at"`
	// PausedBecause is the reason, in words, for which the clock is paused now; "" while it runs.
	PausedBecause string `json:"pausedBecause,omitempty"`
}

// maxBeat is the maximum length of a beat's message, in characters.
const maxBeat = 300

// errWorkerStops ends a step that another worker will continue. errPassEnded ends a pass that the next pass will
// continue.
var (
	errWorkerStops = errors.New("this worker stops; another worker continues the step")
	errPassEnded   = errors.New("the pass has ended; the next pass continues the step")
)

// clock measures the spent time of one run of a step. In the background it sends heartbeats with the last stage as
// detail, so that the Temporal UI shows the reason for a step's wait.
type clock struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	done chan struct{}
	beat Beat
	well Beat // the beat at the last check that showed no fault of our cluster
	now  func() time.Time
	// stage is the backend's present stage, which began at since.
	stage backend.Stage
	since time.Time
	mu    sync.Mutex
	wait  sync.WaitGroup
	// fault returns the reason to pause the clock, or "" (see ownFault). A nil fault never pauses the clock.
	fault    func(ctx context.Context, silent bool) string
	checking sync.Mutex
}

// startClock starts the clock for one run of a step. A first pass that ends soon sends no heartbeat, because each
// heartbeat is billed. The step works under the returned context. This context ends when the activity is cancelled,
// or when this worker stops. The parameter most limits the time in one stage: the context also ends when the step has
// been in one stage for this time, or when the run has lasted for twice this time. If most is 0, these limits do not
// apply. If provider is not empty, the clock is paused during faults of our own cluster.
func (a *Activities) startClock(parent context.Context, most time.Duration, provider string) (context.Context,
	*clock) {
	c := &clock{done: make(chan struct{}), now: a.now, beat: Beat{Stage: "starting", At: a.now()}}
	if provider != "" {
		c.fault = func(ctx context.Context, silent bool) string { return a.ownFault(ctx, provider, silent) }
	}
	if activity.HasHeartbeatDetails(parent) {
		var last Beat
		if activity.GetHeartbeatDetails(parent, &last) == nil {
			now := c.beat.At
			c.beat = last
			c.beat.advance(now)
		}
	}
	c.ctx, c.end = context.WithCancelCause(backend.WithStartTime(parent, activity.GetInfo(parent).ScheduledTime))
	if activity.GetInfo(parent).Attempt > 1 { // so that the budget of a step whose worker dies repeatedly is used up
		c.record(parent)
	}
	c.well = c.beat
	c.wait.Go(func() { c.run(parent, most) })
	if c.fault != nil {
		c.wait.Go(func() { c.watch(parent) })
	}
	return c.ctx, c
}

// interval returns the time between two beats, which is also the time between two checks for a pause. A step that has
// made many passes sends half as many beats, because each heartbeat is billed.
func interval(ctx context.Context) time.Duration {
	info := activity.GetInfo(ctx)
	parts := time.Duration(4)
	if info.Attempt > silentPasses {
		parts = 2
	}
	if i := info.HeartbeatTimeout / parts; i > 0 {
		return i
	}
	return time.Second
}

// watch checks at each interval whether the clock must pause. It runs in its own goroutine, because the beats must not
// wait for the checks.
func (c *clock) watch(parent context.Context) {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	c.wait.Go(func() {
		defer cancel()
		select {
		case <-c.done:
		case <-ctx.Done():
		}
	})
	tick := time.NewTicker(interval(parent))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.pauseDuringFault(ctx, false)
		}
	}
}

// pauseDuringFault pauses the clock during a fault of our own cluster, and resumes it afterwards. The time since the
// last check without a fault does not count. The parameter silent is true if the provider does not answer.
func (c *clock) pauseDuringFault(ctx context.Context, silent bool) {
	if c.fault == nil {
		return
	}
	c.checking.Lock()
	defer c.checking.Unlock()
	c.mu.Lock()
	silent = silent || c.beat.PausedBecause == pausedByIsolation
	c.mu.Unlock()
	why := c.fault(ctx, silent)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	c.beat.advance(c.now())
	if why != "" {
		c.beat.Spent, c.beat.Network = c.well.Spent, c.well.Network
	}
	c.beat.PausedBecause, c.well = why, c.beat
}

func (c *clock) run(parent context.Context, most time.Duration) {
	var stageEnd <-chan time.Time
	if most > 0 {
		stageEnd = time.After(most)
	}
	last := time.Now().Add(2 * most)
	tick := time.NewTicker(interval(parent))
	defer tick.Stop()
	stopping := activity.GetWorkerStopChannel(parent)
	for {
		select {
		case <-c.done:
			return
		case <-stopping:
			c.end(errWorkerStops)
			stopping = nil
		case <-stageEnd:
			if left := min(c.left(most), time.Until(last)); left > 0 {
				stageEnd = time.After(left)
				continue
			}
			c.end(errPassEnded)
		case <-tick.C:
			c.record(parent)
		}
	}
}

// left returns the remaining time of the present stage. The parameter most is the longest time that the stage may
// last.
func (c *clock) left(most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.since.Add(most))
}

// advance adds the time since the last beat to the spent time, unless the clock is paused.
func (b *Beat) advance(now time.Time) {
	gone := min(max(now.Sub(b.At), 0), maxGap)
	if b.PausedBecause != "" {
		gone = 0
	}
	b.Spent += gone
	if backend.Stage(b.Stage).OfNetwork() {
		b.Network += gone
	}
	b.At = now
}

// record updates the clock and sends a heartbeat.
func (c *clock) record(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beat.advance(c.now())
	activity.RecordHeartbeat(ctx, c.beat)
}

// progress receives from the backend the present stage and the reason for the wait.
func (c *clock) progress(stage backend.Stage, message string) {
	c.mu.Lock()
	if now := c.now(); backend.Stage(c.beat.Stage).OfNetwork() != stage.OfNetwork() {
		c.beat.advance(now)
	}
	if c.stage != stage {
		c.stage, c.since = stage, time.Now()
	}
	c.beat.Stage = string(stage)
	c.beat.Message = shorten.Words(message, maxBeat)
	c.mu.Unlock()
}

// spent returns the time that the step has used.
func (c *clock) spent() time.Duration {
	without, network := c.spentOn()
	return without + network
}

// spentOn divides the spent time into the stages of the network and all other stages.
func (c *clock) spentOn() (without, network time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.beat
	now.advance(c.now())
	return now.Spent - now.Network, now.Network
}

// exceeded reports whether the budget is used up. It returns false while the clock is paused.
func (c *clock) exceeded(budget time.Duration) bool {
	c.mu.Lock()
	paused := c.beat.PausedBecause != ""
	c.mu.Unlock()
	return !paused && c.spent() >= budget
}

// stop ends the run.
func (c *clock) stop() {
	close(c.done)
	c.wait.Wait()
	c.end(nil)
}

// budgetExceeded returns the final error of a step whose budget is used up.
func budgetExceeded(f *fleet.Failure, budget time.Duration) error {
	f = fleet.NewFailure(f.Code, f.Provider, f.Stage, fmt.Sprintf("not done within %s: %s", budget, f.Message))
	return temporal.NewApplicationErrorWithOptions(f.Message, string(f.Code), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{f, TypeGaveUp},
	})
}

// withHeartbeats sends heartbeats for an activity that lists objects, until stop is called. The returned context also
// ends when this worker stops.
func withHeartbeats(ctx context.Context) (context.Context, func()) {
	a := Activities{}
	working, c := a.startClock(ctx, 0, "")
	return working, c.stop
}
