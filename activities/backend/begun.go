package backend

import (
	"context"
	"time"
)

type startTimeKey struct{}

// WithStartTime sets the time at which the verb was first called for its present purpose. A caller that calls a verb
// in short passes sets the same time in each pass. The verb counts its grace periods from this time. Otherwise the
// grace periods would start again in each pass.
func WithStartTime(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, startTimeKey{}, at)
}

// StartTime returns the time that WithStartTime has set, or the present time when none is set.
func StartTime(ctx context.Context) time.Time {
	if at, ok := ctx.Value(startTimeKey{}).(time.Time); ok && !at.IsZero() {
		return at
	}
	return time.Now()
}
