// Package searchattr keeps track of whether Temporal's namespace has the search attributes that our workflows set.
//
// Temporal refuses to start a workflow with an attribute that is not registered. So a worker asks Temporal when it
// starts and periodically afterwards, and starts workflows without the attributes until they are registered. Everything
// else works meanwhile; only the list of workflows cannot be searched by them.
package searchattr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Mode is what an operator wants.
type Mode string

const (
	// Auto sets the attributes when they are registered.
	Auto Mode = "auto"
	// On is Auto, but a worker does not start without them.
	On Mode = "on"
	// Off sets none, and does not ask.
	Off Mode = "off"
)

// ParseMode reads a Mode; "" is Auto.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case "":
		return Auto, nil
	case Auto, On, Off:
		return m, nil
	}
	return "", fmt.Errorf("search attributes %q: use auto, on or off", s)
}

// Set reads a flag's value.
func (m *Mode) Set(s string) (err error) { *m, err = ParseMode(s); return err }

// String is the flag's value.
func (m *Mode) String() string { return string(*m) }

// Type names the values of the flag in its help.
func (m *Mode) Type() string { return "auto|on|off" }

// ErrNotRegistered means that the namespace lacks attributes; the text says which, and how to register them.
var ErrNotRegistered = errors.New("search attributes are not registered")

// Options are what a Gate needs.
type Options struct {
	Temporal  Temporal
	Namespace string // the one that Temporal's client has; "" means "default"
	Mode      Mode   // "" means Auto
	Logger    *slog.Logger
	// Every is how often Temporal is asked again. 0 means a minute.
	Every time.Duration
	// Retry is how long after no answer the first question is put again. 0 means 2 s.
	Retry time.Duration
}

// Gate knows whether the attributes are registered now. It is safe for concurrent use.
type Gate struct {
	o          Options
	registered atomic.Bool
}

// Open asks Temporal, however long it takes to answer. With Auto, missing attributes are one warning and no error, and
// so is a Temporal that refuses to answer. With On both are errors; that for missing attributes is ErrNotRegistered.
// The only other error is the context's.
func Open(ctx context.Context, o Options) (*Gate, error) {
	mode, err := ParseMode(string(o.Mode))
	if err != nil {
		return nil, err
	}
	o.Mode = mode
	o.Namespace = cmp.Or(o.Namespace, "default")
	o.Every = cmp.Or(o.Every, time.Minute)
	o.Retry = cmp.Or(o.Retry, 2*time.Second)
	g := &Gate{o: o}
	if mode == Off {
		return g, nil
	}
	found, err := g.ask(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("look up search attributes: %w", err)
	case err == nil && !found.complete() && mode == On:
		return nil, fmt.Errorf("%w: %s; register them with liqo-autoscaler temporal setup, or: %s", ErrNotRegistered, found,
			found.command(o.Namespace))
	case err == nil:
		g.registered.Store(found.complete())
		g.tell(found)
	case mode == On:
		return nil, fmt.Errorf("look up search attributes: %w", err)
	default:
		o.Logger.Warn("Temporal does not say which search attributes exist; workflows are listed without them", "error",
			err)
	}
	return g, nil
}

// ask repeats the question until there is an answer of any kind.
func (g *Gate) ask(ctx context.Context) (finding, error) {
	for {
		found, err := look(ctx, g.o.Temporal, g.o.Namespace)
		if !noAnswer(err) {
			return found, err
		}
		g.o.Logger.Warn("Temporal does not answer; trying again", "error", err)
		if !wait.For(ctx, g.o.Retry) {
			return finding{}, err
		}
	}
}

// Registered reports whether all attributes were there when Temporal was last asked. It does not block.
func (g *Gate) Registered() bool { return g.registered.Load() }

// Watch asks again periodically until the context ends: attributes that are registered later are set without a restart,
// and removed attributes block no workflow. A question without an answer changes nothing.
func (g *Gate) Watch(ctx context.Context) {
	if g.o.Mode == Off {
		return
	}
	for wait.For(ctx, g.o.Every) {
		found, err := look(ctx, g.o.Temporal, g.o.Namespace)
		if err != nil {
			g.o.Logger.Debug("look up search attributes", "error", err)
			continue
		}
		if g.registered.Swap(found.complete()) != found.complete() {
			g.tell(found)
		}
	}
}

func (g *Gate) tell(found finding) {
	if found.complete() {
		g.o.Logger.Info("workflows are listed with search attributes", "namespace", g.o.Namespace)
		return
	}
	g.o.Logger.Warn("search attributes are not registered; workflows are listed without them, everything else works",
		"missing", found.String(), "register", found.command(g.o.Namespace))
}
