package wait

import (
	"context"
	"sync"
	"time"
)

// Bounds of a check that Rarely repeats.
const (
	remembered = time.Second
	checkLimit = 900 * time.Millisecond // the kubelet gives up after a second
)

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
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkLimit)
			defer cancel()
			last, at = look(ctx), time.Now()
		}
		return last
	}
}
