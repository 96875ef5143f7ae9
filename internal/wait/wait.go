// Package wait waits with a context, and for concurrent calls.
package wait

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// ForAll calls do with each element of all and its index, at most most calls concurrently. It returns when all calls
// have returned.
func ForAll[T any](all []T, most int, do func(i int, of T)) {
	var calls errgroup.Group
	calls.SetLimit(most)
	for i, of := range all {
		calls.Go(func() error {
			do(i, of)
			return nil
		})
	}
	_ = calls.Wait()
}

// For waits for the time d. It returns false when the context has ended earlier.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
