package testkit

import (
	"context"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// tick is the interval of the checks.
const tick = 20 * time.Millisecond

// Until waits for a condition, which returns nil when it holds. When it does not hold within the limit, the test ends
// with the last error of the condition.
func Until(t testing.TB, limit time.Duration, what string, check func() error) {
	t.Helper()
	if err := Poll(t.Context(), limit, tick, func(context.Context) error { return check() }); err != nil {
		t.Fatalf("%s: not in %s; last: %v", what, limit, err)
	}
}

// Poll is Until for callers that cannot end the test: it returns the last error of the condition. The condition's
// context ends with the limit; an error that is only this end does not replace the error before it.
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
