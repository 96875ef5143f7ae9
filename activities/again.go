package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// How soon a pass of a step comes again: one that has not reached its end, and one that has found no place.

// How long a step waits for its next pass, at most: one that somebody waits for; a removal; a removal whose provider
// has been away for some four minutes; and one whose provider has been away for half an hour. Temporal Cloud bills each
// pass and each heartbeat.
const (
	soonAgain   = time.Second
	laterAgain  = 5 * time.Second
	seldomAgain = 30 * time.Second
	seldomAfter = 20 // passes
	hardlyAgain = 3 * time.Minute
	hardlyAfter = 60
)

// again is the error of a pass that did not reach its end: it frees its slot, and comes again after a while. A removal
// that has made many passes sends no heartbeat here: it has no budget that the heartbeat would keep.
func (c *clock) again(ctx context.Context, f *fleet.Failure, most time.Duration) error {
	passes := activity.GetInfo(ctx).Attempt
	if most <= soonAgain || passes <= seldomAfter {
		c.record(ctx)
	}
	return temporal.NewApplicationErrorWithOptions(f.Message, string(f.Code), temporal.ApplicationErrorOptions{
		Details: []any{f}, NextRetryDelay: againAfter(passes, most),
	})
}

func againAfter(passes int32, most time.Duration) time.Duration {
	switch {
	case most <= soonAgain:
	case passes > hardlyAfter:
		return hardlyAgain
	case passes > seldomAfter:
		return seldomAgain
	}
	return min(200*time.Millisecond<<min(passes-1, 8), most)
}

// A step that found no place comes again after busyDelay at least. When many wait they come one after the other, about
// as often as places become free: each asking costs Temporal as much as a step does.
const (
	busyDelay    = time.Second
	maxBusyDelay = 30 * time.Second
	minBetween   = 25 * time.Millisecond
	maxBetween   = 100 * time.Millisecond
)

// wait is how long a step waits that has found no place.
func (p *places) wait(now time.Time, most int) time.Duration {
	held := max(p.held, now.Sub(p.changed))
	between := min(max(held/time.Duration(most), minBetween), maxBetween)
	wait := min(max(p.next.Add(between).Sub(now), busyDelay), maxBusyDelay)
	p.next = now.Add(wait)
	return wait
}
