package wait

import (
	"context"
	"sync"
	"time"
)

// CheckLimit is the maximum duration of a health check. It is less than one second, the kubelet's default timeout.
const CheckLimit = 900 * time.Millisecond

// remembered is the time for which Rarely returns a result again.
const remembered = time.Second

// Rarely returns a health check that calls the function check at most once a second. In the meantime the health check
// returns the last result. It protects the server to which check sends a request, because any client may request the
// health of this process. Concurrent callers wait for the same call of check. This call ends after CheckLimit, even if
// the context of its caller ends earlier.
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
