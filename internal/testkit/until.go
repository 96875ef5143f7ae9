package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// tick is the interval of the checks.
const tick = 20 * time.Millisecond

// Until blocks until check returns nil. If check does not return nil within the limit, Until fails the test with the
// last error of check.
func Until(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := Poll(t.Context(), limit, tick, func(context.Context) error { return check() }); err != nil {
		t.Fatalf("%s: not in %s; last: %v", what, limit, err)
	}
}

// Poll blocks until check returns nil, or the limit has passed, or ctx ends. It then returns the last error of check.
// The context of check ends after the limit. An error that check returns after this end does not replace an earlier
// error.
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
