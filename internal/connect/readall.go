package connect

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/util/workqueue"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// readParallel is how many entities are read at a time.
const readParallel = 8

// ReadAll reads each name, and returns what could be read, in the order of the names, with the errors of the others.
// listed says that the names are from Temporal's index, which lags behind: what does not run any more is left out.
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
