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

// Groups sends the facts about Nodes to the node groups.
type Groups interface {
	// Fact sends a fact to the node group by a signal, and returns when Temporal has stored the signal. It is idempotent.
	// An error that wraps ErrNoGroup means that the group does not run. Run then drops the fact, because the group
	// inspects its instances when it is started. Run retries after any other error.
	Fact(ctx context.Context, group string, fact fleet.Fact) error
}

// ErrNoGroup means that no workflow of the node group runs.
var ErrNoGroup = errors.New("no such node group")

// Options holds the dependencies and settings of Run. Watcher and Groups are required; all other fields have defaults.
type Options struct {
	Watcher backend.Watcher
	Groups  Groups
	Logger  *slog.Logger     // nil means slog.Default()
	Clock   func() time.Time // nil means time.Now
	// Differing, if any, counts the Nodes that differ from the template that CA received. Events, if any, records
	// their differences.
	Differing *Differing
	Events    activities.EventRecorder
	// Parallel bounds the number of Nodes that are repaired concurrently. It also bounds the number of facts that are
	// sent concurrently. One attempt has at most one repair and one send at a time. Default 4.
	Parallel int
	// Bound limits the duration of one call of Restamp or Fact. Default 10s.
	Bound time.Duration
	// CallEvery is the interval between two requests to register a missing Node again, because a kubelet may miss one
	// request. It is also the interval at which a Node that must not be stamped yet is checked; a reported change causes
	// an earlier check. Default 15s.
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

// Run watches the Nodes until the context ends, and returns when all its goroutines have ended. It logs each failure
// and retries it with growing waits. A failure at one Node does not delay other Nodes.
func Run(ctx context.Context, o Options) {
	o = o.withDefaults()
	w := &watch{Options: o, attempts: map[string]*attempt{}, repairing: o.newQueue(), sending: o.newQueue()}
	var group sync.WaitGroup
	for range o.Parallel {
		group.Go(func() { process(ctx, w.repairing, w.repair) })
		group.Go(func() { process(ctx, w.sending, w.send) })
	}
	w.follow(ctx)
	w.repairing.ShutDown()
	w.sending.ShutDown()
	group.Wait()
}

// queue contains the object names of the attempts that wait for a check.
type queue = workqueue.TypedRateLimitingInterface[string]

func (o Options) newQueue() queue {
	return workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](o.RetryFirst,
		o.RetryMax))
}

// watch holds the state of one Run.
type watch struct {
	Options
	// repairing is the queue of repairs, and sending is the queue of facts. Each attempt passes through the queue of
	// repairs first. The queues are separate because facts wait for Temporal, and the repair of a Node must not wait
	// for it.
	repairing, sending queue

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

// update saves a report of the backend and queues its attempt. It never blocks, so that one slow attempt does not delay
// other attempts.
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
	if news || w.repairing.NumRequeues(name) == 0 { // a retry without news waits for its backoff
		w.repairing.Add(name)
	}
}

// queueFact moves an attempt from the queue of repairs to the queue of facts.
func (w *watch) queueFact(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.attempts[name]
	if a != nil && (a.news || w.sending.NumRequeues(name) == 0) {
		a.news = false
		w.sending.Add(name)
	}
}

// process calls the function `do` for each item of the queue until the queue is shut down. It requeues an item with
// backoff when `do` returns false.
func process(ctx context.Context, from queue, do func(ctx context.Context, name string) bool) {
	for {
		name, shutdown := from.Get()
		if shutdown {
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
