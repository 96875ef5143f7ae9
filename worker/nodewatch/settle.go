package nodewatch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// repair reports the differences of the attempt's Node. It makes a missing Node register again, and writes the
// instance id on a Node that lacks the id. It returns false when one of these two actions failed and must be retried.
func (w *watch) repair(ctx context.Context, name string) bool {
	a, ok := w.read(name)
	if !ok {
		return true
	}
	log := w.log(a)
	w.report(name, a, log)
	requested := w.registerAgain(ctx, name, a, log)
	stamped := w.stamp(ctx, name, a, log)
	w.queueFact(name)
	return requested && stamped
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

// For the time joining, nodewatch does not stamp a new Node, because the activity Join stamps the Node right after it
// has marked the virtual node.
const joining = 2 * time.Second

// stamp writes the instance id on the attempt's Node if the Node lacks it. If the Node must not be stamped yet, stamp
// tries again after the Node's next reported change, but at the latest after CallEvery. It returns false after a
// failure.
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
	case ctx.Err() != nil: // the next Run stamps the Node
	case err == nil && a.stamped:
		log.Info("a Node that registered again has its instance id again", "node", a.found.Attempt.ObjectName())
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

// registerAgain requests that the kubelet registers a missing Node. It repeats the request at intervals of CallEvery
// until the Node exists. It returns false when the request failed.
func (w *watch) registerAgain(ctx context.Context, name string, a attempt, log *slog.Logger) bool {
	if !a.lacksNode() {
		return true
	}
	now := w.Clock()
	if wait := a.requested.Add(w.CallEvery).Sub(now); wait > 0 {
		w.repairing.AddAfter(name, wait)
		return true
	}
	if err := w.restamp(ctx, a); err != nil {
		if ctx.Err() != nil {
			return false
		}
		log.Warn("cannot make the kubelet register a deleted Node again; trying again", "node",
			a.found.Attempt.ObjectName(), "error", err)
		return false
	}
	log.Warn("another actor deleted a Node; its kubelet will register it again", "node", a.found.Attempt.ObjectName())
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.attempts[name]; a != nil && !a.found.Node {
		a.requested = now
	}
	w.repairing.AddAfter(name, w.CallEvery)
	return true
}

func (w *watch) restamp(ctx context.Context, a attempt) error {
	ctx, cancel := context.WithTimeout(ctx, w.Bound)
	defer cancel()
	return w.Watcher.Restamp(ctx, a.found.Attempt)
}

// send sends the attempt's current fact to the group, unless this fact was the last sent one. It returns false when the
// send failed and must be retried.
func (w *watch) send(ctx context.Context, name string) bool {
	a, ok := w.read(name)
	if !ok {
		return true
	}
	defer w.forget(name)
	log, kind := w.log(a), a.fact()
	if kind == a.sent {
		return true
	}
	if kind != "" {
		bounded, cancel := context.WithTimeout(ctx, w.Bound)
		defer cancel()
		err := w.Groups.Fact(bounded, a.found.Attempt.Group, fleet.Fact{
			Instance: a.found.Attempt.Instance, Attempt: a.found.Attempt.Number, Kind: kind,
			Confirms: kind == fleet.Registered && !a.sentOther,
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return false
		case errors.Is(err, ErrNoGroup):
			log.Info("the node group of this attempt does not run; the fact is dropped", "fact", kind, "error", err)
		case err != nil:
			log.Warn("cannot send a fact to the node group; trying again", "fact", kind, "error", err)
			return false
		default:
			log.Debug("sent a fact to the node group", "fact", kind)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts[name].sent = kind
	if kind != "" {
		w.attempts[name].sentOther = kind != fleet.Registered
	}
	return true
}

// forget drops an attempt if none of its objects exists and its group has received the last fact.
func (w *watch) forget(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.attempts[name]; a.gone() && a.sent == a.fact() { // only this queue drops attempts, one name at a time
		delete(w.attempts, name)
	}
}
