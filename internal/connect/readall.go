package connect

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/util/workqueue"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// readParallel is the maximum number of concurrent reads.
const readParallel = 8

// ReadAll calls the function `read` for each name, concurrently. It returns the results in the order of the names,
// and the joined errors of the reads that failed. The parameter `listed` is true if the names come from Temporal's
// visibility index. The index may still contain workflows that have ended. Therefore ReadAll then ignores a name for
// which read returns fleet.ErrNotRunning.
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
