package nodewatch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Groups is where facts go.
type Groups interface {
	// Fact tells the node group, by a signal, and returns once it is durable. Told twice equals once. An error that
	// wraps ErrNoGroup means that nobody runs the group: the fact is dropped, and the group will look by itself when it
	// is started. Any other error is retried.
	Fact(ctx context.Context, group string, fact fleet.Fact) error
}

// ErrNoGroup means that there is no such node group at present.
var ErrNoGroup = errors.New("no such node group")

// Options are what Run needs: Watcher and Groups, the others have defaults.
type Options struct {
	Watcher backend.Watcher
	Groups  Groups
	Logger  *slog.Logger     // nil means slog.Default()
	Clock   func() time.Time // nil means time.Now
	// Differing, if any, counts the Nodes that are not as CA was told; Events, if any, records them.
	Differing *Differing
	Events    activities.EventRecorder
	// Parallel is how many Nodes are repaired at once, and how many groups are told something at once; neither is done
	// twice at once for one attempt. Default 4.
	Parallel int
	// Bound is how long one call of Restamp or Fact may take. Default 10s.
	Bound time.Duration
	// CallEvery is how often a missing Node is called back: a kubelet that does not come may be there the next time. As
	// often a Node that is not to be stamped yet is looked at, if nothing is told of it. Default 15s.
	CallEvery time.Duration
	// RetryFirst and RetryMax are the wait after the first failure, and the longest; it doubles. Defaults 100ms and 30s.
	RetryFirst, RetryMax time.Duration
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Differing = cmp.Or(o.Differing, &Differing{})
	o.Parallel = cmp.Or(o.Parallel, 4)
	o.Bound = cmp.Or(o.Bound, 10*time.Second)
	o.CallEvery = cmp.Or(o.CallEvery, 15*time.Second)
	o.RetryFirst = cmp.Or(o.RetryFirst, 100*time.Millisecond)
	o.RetryMax = cmp.Or(o.RetryMax, 30*time.Second)
	return o
}

// Run watches until the context ends, and returns when all it has started has ended. What fails is tried again, for as
// long as there is reason to, with growing waits; it is logged and stops nothing.
func Run(ctx context.Context, o Options) {
	o = o.withDefaults()
	w := &watch{Options: o, attempts: map[string]*attempt{}, repairing: o.newQueue(), telling: o.newQueue()}
	var group sync.WaitGroup
	for range o.Parallel {
		group.Go(func() { attend(ctx, w.repairing, w.repair) })
		group.Go(func() { attend(ctx, w.telling, w.tell) })
	}
	w.follow(ctx)
	w.repairing.ShutDown()
	w.telling.ShutDown()
	group.Wait()
}

// queue holds the object names of attempts that may need something.
type queue = workqueue.TypedRateLimitingInterface[string]

func (o Options) newQueue() queue {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](o.RetryFirst,
		o.RetryMax))
}

// watch is one Run.
type watch struct {
	Options
	// Each attempt goes through repairing to telling. They are separate queues because a Temporal that does not answer
	// blocks telling, and a Node must not wait for that.
	repairing, telling queue

	mu       sync.Mutex
	attempts map[string]*attempt // by object name
}

// follow runs the backend's watch, again whenever it ends before the context does.
func (w *watch) follow(ctx context.Context) {
	pause := w.RetryFirst
	for {
		began := w.Clock()
		err := w.Watcher.Watch(ctx, w.note)
		if ctx.Err() != nil {
			return
		}
		if w.Clock().Sub(began) > w.RetryMax {
			pause = w.RetryFirst
		}
		w.Logger.Warn("the watch of Nodes ended and is started again", "error", err, "wait", pause)
		if !wait.For(ctx, pause) {
			return
		}
		pause = min(2*pause, w.RetryMax)
	}
}

// note records what the backend reports, and never blocks: one slow attempt must not hold up the others.
func (w *watch) note(found fleet.Found) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := found.Attempt.ObjectName()
	a := w.attempts[name]
	if a == nil {
		a = &attempt{}
		w.attempts[name] = a
	}
	news := a.note(found, w.Clock())
	a.news = a.news || news
	if news || w.repairing.NumRequeues(name) == 0 { // a retry that tells nothing new waits for its turn
		w.repairing.Add(name)
	}
}

// passOn hands an attempt from repairing to telling.
func (w *watch) passOn(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.attempts[name]
	if a != nil && (a.news || w.telling.NumRequeues(name) == 0) {
		a.news = false
		w.telling.Add(name)
	}
}

// attend processes the queue until it is shut down. Items for which do returns false are requeued with backoff.
func attend(ctx context.Context, from queue, do func(ctx context.Context, name string) bool) {
	for {
		name, over := from.Get()
		if over {
			return
		}
		if ctx.Err() == nil && !do(ctx, name) {
			from.AddRateLimited(name)
		} else {
			from.Forget(name)
		}
		from.Done(name)
	}
}
