package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// This file decides when the next pass of a step runs. A step needs another pass if the last one did not finish, or
// if its Limiter did not admit it because the maximum number of steps was running.

// stepDelay is the longest wait between two passes of a step whose result a workflow needs. removalDelay is the
// longest wait between the first silentPasses passes of a removal. If the provider does not answer, these passes take
// about four minutes. The removal then waits for silentDelay between two passes. After deadPasses passes, which take
// about half an hour, it waits for deadDelay. The waits grow because Temporal Cloud bills each pass and each
// heartbeat.
const (
	stepDelay    = time.Second
	removalDelay = 5 * time.Second
	silentDelay  = 30 * time.Second
	silentPasses = 20 // passes
	deadDelay    = 3 * time.Minute
	deadPasses   = 60
)

// retryPass returns the retryable error of a pass that did not finish. The step then frees its slot, and its next
// pass runs after a delay. The parameter most is the longest delay, except for a removal that has made many passes.
// For such a removal retryPass sends no heartbeat: a heartbeat only records how much of its budget a step has used,
// and a removal has no budget.
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

// A step that its Limiter did not admit is retried after at least busyDelay. Each retry costs Temporal as much as a
// step. Therefore the retries of many waiting steps are spread over time: about one retry for each running step that
// ends.
const (
	busyDelay    = time.Second
	maxBusyDelay = 30 * time.Second
	minBetween   = 25 * time.Millisecond
	maxBetween   = 100 * time.Millisecond
)

// wait returns the delay before the next try of a step that the Limiter did not admit.
func (p *places) wait(now time.Time, most int) time.Duration {
	held := max(p.held, now.Sub(p.changed))
	between := min(max(held/time.Duration(most), minBetween), maxBetween)
	wait := min(max(p.next.Add(between).Sub(now), busyDelay), maxBusyDelay)
	p.next = now.Add(wait)
	return wait
}
