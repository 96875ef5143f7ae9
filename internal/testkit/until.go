package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// tick is the interval of the checks.
const tick = 20 * time.Millisecond

// Until blocks until check returns nil. If this does not happen within the limit, Until fails the test with the last
// error of check.
func Until(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := Poll(t.Context(), limit, tick, func(context.Context) error { return check() }); err != nil {
		t.Fatalf("%s: not in %s; last: %v", what, limit, err)
	}
}

// Poll calls check repeatedly until it returns nil, the limit has passed, or ctx ends, and returns the last error of
// check. The context of check ends at the limit. An error that check returns after the limit does not replace an
// earlier error.
func Poll(ctx context.Context, limit, every time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		if !wait.For(ctx, every) {
			return last
		}
	}
}
