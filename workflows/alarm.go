package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// alarm is a workflow's one timer. It is armed anew only when the due time moves earlier; when it fires early its owner
// looks and arms it again.
type alarm struct {
	due    time.Time
	cancel workflow.CancelFunc
}

// arm has ring called at due, if that is before what it is armed for; a zero time disarms it.
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
