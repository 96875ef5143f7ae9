package nodewatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// repair makes the attempt's Node register again, or stamps it, if it needs that now, and reports its differences. It
// returns false when one of the first two failed and must be retried.
func (w *watch) repair(ctx context.Context, name string) bool {
	a, ok := w.read(name)
	if !ok {
		return true
	}
	log := w.log(a)
	w.report(name, a, log)
	called := w.callBack(ctx, name, a, log)
	stamped := w.stamp(ctx, name, a, log)
	w.passOn(name)
	return called && stamped
}

func (w *watch) log(a attempt) *slog.Logger {
	return w.Logger.With("group", a.found.Attempt.Group, "instance", a.found.Attempt.Instance, "attempt",
		a.found.Attempt.Number)
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

// joining is the time for which a Node that was never seen stamped is left to the Join that has marked its virtual
// node.
const joining = 2 * time.Second

// stamp puts the instance id back on the attempt's Node if the Node lacks it. A Node that must not be stamped yet is
// tried again after its next reported change, or else every CallEvery.
func (w *watch) stamp(ctx context.Context, name string, a attempt, log *slog.Logger) bool {
	if !a.lacksStamp() {
		return true
	}
	if wait := a.seen.Add(joining).Sub(w.Clock()); wait > 0 && !a.stamped {
		w.repairing.AddAfter(name, wait)
		return true
	}
	err := w.restamp(ctx, a)
	switch {
	case ctx.Err() != nil: // the next Run does it
	case err == nil && a.stamped:
		log.Info("a Node that registered again has its instance id back", "node", a.found.Attempt.ObjectName())
	case errors.Is(err, backend.ErrConflict):
		log.Error("a Node cannot get its instance id", "node", a.found.Attempt.ObjectName(), "error", err)
	case errors.Is(err, backend.ErrNotYet):
		log.Info("a Node gets its instance id when it is ready", "node", a.found.Attempt.ObjectName(), "waits", err)
		w.repairing.AddAfter(name, w.CallEvery)
		return true
	case err != nil:
		log.Warn("a Node cannot get its instance id yet", "node", a.found.Attempt.ObjectName(), "error", err)
	}
	return err == nil
}

// callBack makes the kubelet register a missing Node, every CallEvery until the Node exists.
func (w *watch) callBack(ctx context.Context, name string, a attempt, log *slog.Logger) bool {
	if !a.lacksNode() {
		return true
	}
	now := w.Clock()
	if wait := a.called.Add(w.CallEvery).Sub(now); wait > 0 {
		w.repairing.AddAfter(name, wait)
		return true
	}
	if err := w.restamp(ctx, a); err != nil {
		if ctx.Err() != nil {
			return false
		}
		log.Warn("a deleted Node cannot be restored yet", "node", a.found.Attempt.ObjectName(), "error", err)
		return false
	}
	log.Warn("a Node was deleted by somebody; it will be registered again", "node", a.found.Attempt.ObjectName())
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.attempts[name]; a != nil && !a.found.Node {
		a.called = now
	}
	w.repairing.AddAfter(name, w.CallEvery)
	return true
}

func (w *watch) restamp(ctx context.Context, a attempt) error {
	ctx, cancel := context.WithTimeout(ctx, w.Bound)
	defer cancel()
	return w.Watcher.Restamp(ctx, a.found.Attempt)
}

// send sends the attempt's current fact to the group, unless it was the last one sent. It returns false when that
// failed and must be retried.
func (w *watch) send(ctx context.Context, name string) bool {
	a, ok := w.read(name)
	if !ok {
		return true
	}
	defer w.forget(name)
	log, kind := w.log(a), a.fact()
	if kind == a.told {
		return true
	}
	if kind != "" {
		bounded, cancel := context.WithTimeout(ctx, w.Bound)
		defer cancel()
		err := w.Groups.Fact(bounded, a.found.Attempt.Group, fleet.Fact{
			Instance: a.found.Attempt.Instance, Attempt: a.found.Attempt.Number, Kind: kind,
			Confirms: kind == fleet.Registered && !a.otherwise,
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return false
		case errors.Is(err, ErrNoGroup):
			log.Info("the node group of this attempt does not run; the fact is dropped", "fact", kind, "error", err)
		case err != nil:
			log.Warn("the node group cannot be told", "fact", kind, "error", err)
			return false
		default:
			log.Debug("the node group was told", "fact", kind)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[name].told = kind
	if kind != "" {
		w.attempts[name].otherwise = kind != fleet.Registered
	}
	return true
}

// forget drops an attempt without objects whose group has received its last fact.
func (w *watch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.attempts[name]; a.gone() && a.told == a.fact() { // only this queue drops attempts, one name at a time
		delete(w.attempts, name)
	}
}
