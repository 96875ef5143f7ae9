package client

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// newOperation returns a new id for one call and the time until which the call may run, by the workflows' clock.
func (b *base) newOperation(ctx context.Context) fleet.Operation {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = b.now().Add(defaultDeadline)
	}
	return fleet.Operation{ID: uuid.NewString(),
		GiveUpAt: deadline.Add(-fleet.GiveUpBefore).Add(time.Duration(b.offset.Load()))}
}

// recordClock stores the difference between the workflows' clock and ours.
func (b *base) recordClock(at time.Time) {
	if !at.IsZero() {
		b.offset.Store(int64(at.Sub(b.now())))
	}
}
