package testkit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Load makes callers repeat call until end or the test's end. back waits until each caller has completed two more
// calls, the second of which began after back; end waits until all callers have ended. The first error of a call ends
// its caller, and fails the test in back or end. The context of a call ends with the test.
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
