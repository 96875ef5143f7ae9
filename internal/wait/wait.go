// Package wait contains functions that wait for a duration or for concurrent calls.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// ForAll calls the function do once for each element of the slice, with the element and its index. At most the given
// number of calls run concurrently. ForAll blocks until every call has returned.
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

// For blocks for the duration d or until the context ends. It returns false if the context has ended.
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

// Err returns the error of the ended context together with its cause.
func Err(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
