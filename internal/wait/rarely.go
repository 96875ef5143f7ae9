package wait

import (
	"context"
	"sync"
	"time"
)

// CheckLimit bounds a health check: the kubelet's default timeout is a second.
const CheckLimit = 900 * time.Millisecond

// remembered is how long Rarely returns the last result.
const remembered = time.Second

// Rarely returns a check that calls look at most once a second, and returns the last result in between. It protects the
// target of look, because any client may request the health of this process. Concurrent callers wait for one call of
// look.
func Rarely(look func(context.Context) error) func(context.Context) error {
	var mu sync.Mutex
	var last error
	var at time.Time
	return func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || time.Since(at) >= remembered {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CheckLimit)
			defer cancel()
			last, at = look(ctx), time.Now()
		}
		return last
	}
}
