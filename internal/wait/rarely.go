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

// Rarely returns a check that asks another process at most once a second, and gives the last answer in between: anybody
// may ask for the health of a process. While one caller looks, the others wait for its answer.
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
