package backend

import (
	"context"
	"time"
)

type begunKey struct{}

// WithBegun says when the verb was first called for its present purpose. Whoever calls a verb in short passes sets it
// to the same time in each of them: what the verb gives others a while for is counted from then, and would begin anew
// in each pass otherwise.
func WithBegun(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, begunKey{}, at)
}

// Begun is the time that WithBegun has set, and now when it has set none.
func Begun(ctx context.Context) time.Time {
	if at, ok := ctx.Value(begunKey{}).(time.Time); ok && !at.IsZero() {
		return at
	}
	return time.Now()
}
