package connect

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/util/workqueue"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// readParallel bounds the concurrent reads.
const readParallel = 8

// ReadAll reads each name, and returns the results in the order of the names, with the errors of the failed reads.
// listed means that the names come from Temporal's index, which lags behind: names that no longer run are then omitted.
func ReadAll[T any](names []string, listed bool, read func(name string) (T, error)) ([]T, error) {
	results, errs := make([]T, len(names)), make([]error, len(names))
	workqueue.ParallelizeUntil(context.Background(), readParallel, len(names), func(i int) {
		results[i], errs[i] = read(names[i])
	})
	var out []T
	for i := range names {
		switch {
		case errs[i] == nil:
			out = append(out, results[i])
		case listed && errors.Is(errs[i], fleet.ErrNotRunning):
			errs[i] = nil
		default:
			errs[i] = fmt.Errorf("read %s: %w", names[i], errs[i])
		}
	}
	return out, errors.Join(errs...)
}
