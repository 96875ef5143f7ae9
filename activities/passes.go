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

// PassBound is how long one pass of a step may take in one stage, and half of what it may take in all; its activity's
// own timeout is longer. The next pass begins anew: cut on its way it would never arrive on a provider that is slow.
const PassBound = 4 * time.Second

// maxGap is how much of the time between two beats counts: a step's clock stands still while nobody runs it.
const maxGap = 10 * time.Second

// Beat is what a step's heartbeats carry: what it waits for, and its clock. The clock starts with the first pass and
// goes on with the next one, in whichever worker that runs.
type Beat struct {
	Stage   string        `json:"stage"`
	Message string        `json:"message,omitempty"`
	Spent   time.Duration `json:"spent,omitempty"`
	// Network is how much of Spent went into stages of the network.
	Network time.Duration `json:"network,omitempty"`
	At      time.Time     `json:"at"`
	// PausedBecause is why the clock is paused now, in words; "" while it runs.
	PausedBecause string `json:"pausedBecause,omitempty"`
}

// maxBeat bounds a beat's message, in characters.
const maxBeat = 300

// errWorkerStops is why a step ends that goes on with another worker; errPassOver why a pass does.
var (
	errWorkerStops = errors.New("this worker stops; the step goes on with another")
	errPassOver    = errors.New("the pass is over; the step goes on with the next one")
)

// clock is one run of a step: it beats in the background, with the last stage as detail, so that the Temporal UI shows
// what a step waits for.
type clock struct {
	ctx  context.Context
	end  context.CancelCauseFunc
	done chan struct{}
	beat Beat
	well Beat // as it was when no fault of our own was seen last
	now  func() time.Time
	// stage is the one that the backend is in, since then.
	stage backend.Stage
	since time.Time
	mu    sync.Mutex
	wait  sync.WaitGroup
	// fault, if any, is asked whether the clock stands; see ownFault.
	fault   func(ctx context.Context, silent bool) string
	judging sync.Mutex
}

// startClock starts a run. A first pass that reaches its end soon costs no heartbeat, which would be billed. The
// returned context is what the step works under: it ends when the activity is cancelled, when this worker is told to
// stop, and when the step has been in one stage for most, or at work for twice that; 0 is no bound. The clock stands
// for faults of our own if their provider is named.
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
			c.beat.goOn(now)
		}
	}
	c.ctx, c.end = context.WithCancelCause(backend.WithBegun(parent, activity.GetInfo(parent).ScheduledTime))
	if activity.GetInfo(parent).Attempt > 1 { // so that a step whose worker dies again and again comes to its end
		c.record(parent)
	}
	c.well = c.beat
	c.wait.Go(func() { c.run(parent, most) })
	if c.fault != nil {
		c.wait.Go(func() { c.watch(parent) })
	}
	return c.ctx, c
}

// interval is how often a run beats, and asks whether its clock stands. A step that has made many passes beats half as
// often: each heartbeat is billed.
func interval(ctx context.Context) time.Duration {
	info := activity.GetInfo(ctx)
	parts := time.Duration(4)
	if info.Attempt > seldomAfter {
		parts = 2
	}
	if i := info.HeartbeatTimeout / parts; i > 0 {
		return i
	}
	return time.Second
}

// watch asks again and again whether the clock stands; beside the beats, which must not wait for it.
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
			c.judge(ctx, false)
		}
	}
}

// judge stops the clock for a fault of our own, and lets it go on after that. What it has counted since it was last
// known to be well does not count. silent: the provider does not answer.
func (c *clock) judge(ctx context.Context, silent bool) {
	if c.fault == nil {
		return
	}
	c.judging.Lock()
	defer c.judging.Unlock()
	c.mu.Lock()
	silent = silent || c.beat.PausedBecause == standsIsolated
	c.mu.Unlock()
	why := c.fault(ctx, silent)
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	c.beat.goOn(c.now())
	if why != "" {
		c.beat.Spent, c.beat.Network = c.well.Spent, c.well.Network
	}
	c.beat.PausedBecause, c.well = why, c.beat
}

func (c *clock) run(parent context.Context, most time.Duration) {
	var over <-chan time.Time
	if most > 0 {
		over = time.After(most)
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
		case <-over:
			if left := min(c.left(most), time.Until(last)); left > 0 {
				over = time.After(left)
				continue
			}
			c.end(errPassOver)
		case <-tick.C:
			c.record(parent)
		}
	}
}

// left is how long the step may stay in its stage, if that is so long at most.
func (c *clock) left(most time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.since.Add(most))
}

// goOn lets the clock go on, unless it stands, in the stage that it is in.
func (b *Beat) goOn(now time.Time) {
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

// record beats, and lets the clock go on.
func (c *clock) record(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.beat.goOn(c.now())
	activity.RecordHeartbeat(ctx, c.beat)
}

// progress is the backend's way to say what it waits for.
func (c *clock) progress(stage backend.Stage, message string) {
	c.mu.Lock()
	if now := c.now(); backend.Stage(c.beat.Stage).OfNetwork() != stage.OfNetwork() {
		c.beat.goOn(now)
	}
	if c.stage != stage {
		c.stage, c.since = stage, time.Now()
	}
	c.beat.Stage = string(stage)
	c.beat.Message = shorten.Words(message, maxBeat)
	c.mu.Unlock()
}

// spent is how long the step has been worked on.
func (c *clock) spent() time.Duration {
	without, network := c.spentOn()
	return without + network
}

// spentOn is how much of that went into stages of the network, and how much into all others.
func (c *clock) spentOn() (without, network time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.beat
	now.goOn(c.now())
	return now.Spent - now.Network, now.Network
}

// over reports whether so much has been spent; not while the clock stands.
func (c *clock) over(budget time.Duration) bool {
	c.mu.Lock()
	stands := c.beat.PausedBecause != ""
	c.mu.Unlock()
	return !stands && c.spent() >= budget
}

// stop ends the run.
func (c *clock) stop() {
	close(c.done)
	c.wait.Wait()
	c.end(nil)
}

// gaveUp is the error of a step whose budget is used up.
func gaveUp(f *fleet.Failure, budget time.Duration) error {
	f = fleet.NewFailure(f.Code, f.Provider, f.Stage, fmt.Sprintf("not done within %s: %s", budget, f.Message))
	return temporal.NewApplicationErrorWithOptions(f.Message, string(f.Code), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{f, TypeGaveUp},
	})
}

// beating heartbeats for an activity that lists, until stop is called; the context also ends when this worker stops.
func beating(ctx context.Context) (context.Context, func()) {
	a := Activities{}
	working, c := a.startClock(ctx, 0, "")
	return working, c.stop
}
