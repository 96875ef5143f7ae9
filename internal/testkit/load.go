package testkit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Load starts goroutines that repeat call until end is called or the test ends. back blocks until each goroutine has
// completed two more calls, so that the second call has begun after back was called. end blocks until all goroutines
// have ended. After the first error of a call its goroutine ends, and the next back or end fails the test. The context
// of a call ends with the test.
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
