package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// alarm is the only timer of its workflow. arm moves it only to an earlier time. If it fires before the present due
// time, the workflow finds nothing to do and arms it again.
type alarm struct {
	due    time.Time
	cancel workflow.CancelFunc
}

// arm schedules a call of ring at the time due, unless an earlier call is already scheduled. If due is zero, arm stops
// the timer.
func (a *alarm) arm(ctx workflow.Context, due time.Time, ring func()) {
	if due.IsZero() {
		a.disarm()
		return
	}
	if !a.due.IsZero() && !due.Before(a.due) {
		return
	}
	a.disarm()
	timed, cancel := workflow.WithCancel(ctx)
	a.due, a.cancel = due, cancel
	timer := workflow.NewTimer(timed, max(due.Sub(workflow.Now(ctx)), time.Millisecond))
	workflow.Go(timed, func(ctx workflow.Context) {
		if timer.Get(ctx, nil) == nil && a.due.Equal(due) {
			a.due, a.cancel = time.Time{}, nil
			ring()
		}
	})
}

func (a *alarm) disarm() {
	if a.cancel != nil {
		a.cancel()
	}
	a.due, a.cancel = time.Time{}, nil
}
