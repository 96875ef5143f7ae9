// Package searchattr checks and registers the search attributes that our workflows set.
//
// Temporal refuses to start a workflow with an attribute that is not registered. So a worker that sets attributes first
// waits until the namespace has all attributes.
package searchattr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// ErrNotRegistered means that the namespace lacks attributes. The text of the wrapping error contains their names and
// the command that registers them.
var ErrNotRegistered = errors.New("search attributes are not registered")

// Options holds the settings of Await.
type Options struct {
	Temporal  Temporal
	Namespace string // the namespace of Temporal's client; "" means "default"
	Logger    *slog.Logger
	// Waiting, if any, is called with the reason of each wait. It must not block.
	Waiting func(why error)
	// Every is the time between two checks. 0 means 2 s.
	Every time.Duration
}

// Await blocks until the namespace has all search attributes, each as a Keyword. It logs each new reason to wait:
// ErrNotRegistered, or the error of a request that Temporal does not answer. It fails when ctx ends, and when Temporal
// refuses the check.
func Await(ctx context.Context, o Options) error {
	namespace := cmp.Or(o.Namespace, "default")
	var logged logonce.LastError
	for {
		found, err := findMissing(ctx, o.Temporal, namespace)
		switch {
		case err == nil && found.complete():
			return nil
		case err == nil:
			err = fmt.Errorf("%w: %s; register them with liqo-autoscaler temporal setup, or: %s", ErrNotRegistered, found,
				found.command(namespace))
		case !noAnswer(err):
			return fmt.Errorf("check search attributes (--search-attributes=false disables them): %w", err)
		}
		if logged.IsNew(err) {
			o.Logger.Warn("the worker waits for the search attributes of its workflows", "error", err)
		}
		if o.Waiting != nil {
			o.Waiting(err)
		}
		if !wait.For(ctx, cmp.Or(o.Every, 2*time.Second)) {
			return err
		}
	}
}
