package wait

import (
	"context"
	"sync"
	"time"
)

// CheckLimit limits the duration of a health check. It is below one second, the kubelet's default timeout.
const CheckLimit = 900 * time.Millisecond

// remembered is the time for which Rarely returns the last result.
const remembered = time.Second

// Rarely returns a check that calls check at most once a second, and otherwise returns the last result. Any client may
// request the health of this process, so Rarely protects the server to which check sends a request. Concurrent callers
// wait for one call of check. The call ends after CheckLimit, and not when the caller's context ends.
func Rarely(check func(context.Context) error) func(context.Context) error {
	var mu sync.Mutex
	var last error
	var at time.Time
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || time.Since(at) >= remembered {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CheckLimit)
			defer cancel()
			last, at = check(ctx), time.Now()
		}
		return last
	}
}
