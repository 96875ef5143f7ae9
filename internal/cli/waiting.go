package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Patiently calls try every second until try succeeds. It also stops when the result `again` of try is false, when
// the limit has passed, or when ctx ends. It returns the last error of try. While it waits, it prints each new error
// to errOut.
func Patiently(ctx context.Context, limit time.Duration, errOut io.Writer, try func() (again bool, err error)) error {
	end := time.Now().Add(limit)
	var logged logonce.LastError
	for {
		again, err := try()
		if err == nil || !again || !time.Now().Before(end) {
			return err
		}
		if logged.IsNew(err) {
			fmt.Fprintln(errOut, "waiting:", err)
		}
		if !wait.For(ctx, time.Second) {
			return err
		}
	}
}

// WaitFor calls check every 50 ms until check succeeds, ctx ends, or the limit has passed. It returns the last error
// of check.
func WaitFor(ctx context.Context, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if err := check(); err == nil || !wait.For(ctx, 50*time.Millisecond) {
			return err
		}
	}
}
