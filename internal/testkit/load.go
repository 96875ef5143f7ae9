package testkit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Load starts goroutines. Each goroutine repeats the function call until the test ends or the function end is called.
// The function back blocks until each goroutine has completed two more calls, so that at least one of these calls has
// begun after the start of back. The function end blocks until all goroutines have ended. If a call returns an error,
// its goroutine ends, and the next call of back or end fails the test. The context of a call ends with the test.
func Load(t testing.TB, callers int, call func(ctx context.Context) error) (back, end func()) {
	t.Helper()
	var all sync.WaitGroup
	var stopped atomic.Bool
	rounds, failed := make([]atomic.Int64, callers), make(chan error, callers)
	for n := range callers {
		all.Go(func() {
			for !stopped.Load() {
				if err := call(t.Context()); err != nil {
					failed <- err
					return
				}
				rounds[n].Add(1)
			}
		})
	}
	t.Cleanup(func() {
		stopped.Store(true)
		all.Wait()
	})
	noneFailed := func() {
		t.Helper()
		select {
		case err := <-failed:
			require.NoError(t, err, "in a call")
		default:
		}
	}
	back = func() {
		t.Helper()
		for n := range rounds {
			from := rounds[n].Load()
			require.Eventually(t, func() bool { return rounds[n].Load() >= from+2 || len(failed) > 0 }, 2*time.Minute,
				time.Millisecond)
		}
		noneFailed()
	}
	return back, func() {
		t.Helper()
		stopped.Store(true)
		all.Wait()
		noneFailed()
	}
}
