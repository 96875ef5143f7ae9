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

// Groups receives the facts.
type Groups interface {
	// Fact sends a fact to the node group, by a signal, and returns once it is durable. It is idempotent. An error that
	// wraps ErrNoGroup means that the group does not run: the fact is dropped, and the group inspects its instances when
	// it is started. Any other error is retried.
	Fact(ctx context.Context, group string, fact fleet.Fact) error
}

// ErrNoGroup means that the node group does not exist at present.
var ErrNoGroup = errors.New("no such node group")

// Options holds the dependencies and settings of Run. Watcher and Groups are required; all other fields have defaults.
type Options struct {
	Watcher backend.Watcher
	Groups  Groups
	Logger  *slog.Logger     // nil means slog.Default()
	Clock   func() time.Time // nil means time.Now
	// Differing, if any, counts the Nodes that differ from the template that CA received; Events, if any, records them.
	Differing *Differing
	Events    activities.EventRecorder
	// Parallel is the number of Nodes that are repaired concurrently, and of facts that are sent concurrently. One attempt
	// has at most one repair and one send at a time. Default 4.
	Parallel int
	// Bound limits the time of one call of Restamp or Fact. Default 10s.
	Bound time.Duration
	// CallEvery is the interval between two requests to register a missing Node again: a kubelet that does not react may
	// do so the next time. A Node that must not be stamped yet is checked at the same interval, unless a change is
	// reported earlier. Default 15s.
	CallEvery time.Duration
	// RetryFirst and RetryMax are the first and the longest wait after a failure; the wait doubles each time. Defaults
	// 100ms and 30s.
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

// Run watches until the context ends, and returns when all its goroutines have ended. A failure is logged and retried
// with growing waits while its reason holds; it does not stop other work.
func Run(ctx context.Context, o Options) {
	o = o.withDefaults()
	w := &watch{Options: o, attempts: map[string]*attempt{}, repairing: o.newQueue(), telling: o.newQueue()}
	var group sync.WaitGroup
	for range o.Parallel {
		group.Go(func() { attend(ctx, w.repairing, w.repair) })
		group.Go(func() { attend(ctx, w.telling, w.send) })
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

// watch holds the state of one Run.
type watch struct {
	Options
	// The queues of repairs and of facts; each attempt goes through the first one and then the second one. They are
	// separate because a Temporal that does not answer blocks the facts, and the repair of a Node must not wait for
	// Temporal.
	repairing, telling queue

	mu       sync.Mutex
	attempts map[string]*attempt // by object name
}

// follow runs the backend's watch, and restarts it whenever it ends before the context does.
func (w *watch) follow(ctx context.Context) {
	pause := w.RetryFirst
	for {
		began := w.Clock()
		err := w.Watcher.Watch(ctx, w.update)
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

// update saves the backend's report, and never blocks: one slow attempt must not delay other attempts.
func (w *watch) update(found fleet.Found) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := found.Attempt.ObjectName()
	a := w.attempts[name]
	if a == nil {
		a = &attempt{}
		w.attempts[name] = a
	}
	news := a.update(found, w.Clock())
	a.news = a.news || news
	if news || w.repairing.NumRequeues(name) == 0 { // a retry without news waits for its turn
		w.repairing.Add(name)
	}
}

// passOn moves an attempt from the queue of repairs to the queue of facts.
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
