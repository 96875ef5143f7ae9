package nodewatch

import (
	"context"
	"errors"
	"log/slog"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// settle does what the attempt needs now. It is false when some of it failed and is to be tried again.
func (w *watch) settle(ctx context.Context, name string) bool {
	a, ok := w.read(name)
	if !ok {
		return true
	}
	log := w.Logger.With("group", a.found.Attempt.Group, "instance", a.found.Attempt.Instance, "attempt", a.found.Attempt.Number)
	stamped := w.stamp(ctx, name, a, log)
	told := w.tell(ctx, name, a, log)
	w.forget(name)
	return stamped && told
}

func (w *watch) read(name string) (attempt, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.attempts[name]
	if a == nil {
		return attempt{}, false
	}
	return *a, true
}

// stamp puts the instance id back on its Node, if that lacks it, and calls a missing one back.
func (w *watch) stamp(ctx context.Context, name string, a attempt, log *slog.Logger) bool {
	if !a.lacksStamp() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, w.Bound)
	defer cancel()
	err := w.Watcher.Restamp(ctx, a.found.Attempt)
	switch {
	case err == nil && !a.found.Node:
		log.Warn("a node of ours was deleted by somebody; it is expected back", "node", a.found.Attempt.ObjectName())
		w.mu.Lock()
		defer w.mu.Unlock()
		w.attempts[name].called = !w.attempts[name].found.Node
	case err == nil && a.stamped:
		log.Info("a node that was registered anew has its instance id back", "node", a.found.Attempt.ObjectName())
	case errors.Is(err, backend.ErrConflict):
		log.Error("a node of ours cannot have its instance id", "node", a.found.Attempt.ObjectName(), "error", err)
	case err != nil:
		log.Warn("stamp node again", "node", a.found.Attempt.ObjectName(), "error", err)
	}
	return err == nil
}

// tell tells the group what holds of the attempt, if that is not what it was told last.
func (w *watch) tell(ctx context.Context, name string, a attempt, log *slog.Logger) bool {
	kind := a.fact()
	if kind == a.told {
		return true
	}
	if kind != "" {
		bounded, cancel := context.WithTimeout(ctx, w.Bound)
		defer cancel()
		err := w.Groups.Fact(bounded, a.found.Attempt.Group, fleet.Fact{
			Instance: a.found.Attempt.Instance, Attempt: a.found.Attempt.Number, Kind: kind, At: a.seen,
		})
		switch {
		case errors.Is(err, ErrNoGroup):
			log.Info("nobody runs the group of this attempt; the fact is dropped", "fact", kind, "error", err)
		case err != nil:
			log.Warn("tell group", "fact", kind, "error", err)
			return false
		default:
			log.Debug("fact", "fact", kind)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[name].told = kind
	return true
}

// forget drops an attempt of which nothing is left and nothing is to be told.
func (w *watch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.attempts[name]; a.gone() && a.told == a.fact() {
		delete(w.attempts, name)
	}
}
