package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// This file decides when the next pass of a step runs: after a pass that did not finish, and after a pass that found no
// free place in its Limiter.

// Longest waits between two passes of a step: stepDelay when a workflow waits for the result; removalDelay for a
// removal; silentDelay for a removal whose provider has been unreachable for about four minutes; deadDelay for one
// whose provider has been unreachable for half an hour. Temporal Cloud bills each pass and each heartbeat.
const (
	stepDelay    = time.Second
	removalDelay = 5 * time.Second
	silentDelay  = 30 * time.Second
	silentPasses = 20 // passes
	deadDelay    = 3 * time.Minute
	deadPasses   = 60
)

// retryPass returns the retryable error of a pass that did not finish: the step frees its slot, and its next pass runs
// after a delay of at most most. A removal that has made many passes records no heartbeat, because a removal has no
// budget whose elapsed time a heartbeat would preserve.
func (c *clock) retryPass(ctx context.Context, f *fleet.Failure, most time.Duration) error {
	passes := activity.GetInfo(ctx).Attempt
	if most <= stepDelay || passes <= silentPasses {
		c.record(ctx)
	}
	return temporal.NewApplicationErrorWithOptions(f.Message, string(f.Code), temporal.ApplicationErrorOptions{
		Details: []any{f}, NextRetryDelay: retryDelay(passes, most),
	})
}

func retryDelay(passes int32, most time.Duration) time.Duration {
	switch {
	case most <= stepDelay:
	case passes > deadPasses:
		return deadDelay
	case passes > silentPasses:
		return silentDelay
	}
	return min(200*time.Millisecond<<min(passes-1, 8), most)
}

// A step that found no place is retried after at least busyDelay. Many waiting steps are retried one after another,
// about as often as places become free, because each try costs Temporal as much as a step.
const (
	busyDelay    = time.Second
	maxBusyDelay = 30 * time.Second
	minBetween   = 25 * time.Millisecond
	maxBetween   = 100 * time.Millisecond
)

// wait returns the delay before the next try of a step that has found no place.
func (p *places) wait(now time.Time, most int) time.Duration {
	held := max(p.held, now.Sub(p.changed))
	between := min(max(held/time.Duration(most), minBetween), maxBetween)
	wait := min(max(p.next.Add(between).Sub(now), busyDelay), maxBusyDelay)
	p.next = now.Add(wait)
	return wait
}
