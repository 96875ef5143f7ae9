package wait

import (
	"context"
	"sync"
	"time"
)

// CheckLimit bounds a health check: the kubelet by default gives up after a second.
const CheckLimit = 900 * time.Millisecond

// remembered is the time for which Rarely returns the last answer.
const remembered = time.Second

// Rarely returns a check that calls look at most once a second, and returns the last answer in between. It protects the
// process that look asks, because any client may request the health of this process. Concurrent callers wait for one
// call of look.
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
