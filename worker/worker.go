// Package worker connects the workflows and activities to one backend, and runs them as Temporal workers. A lane is one
// task queue with its own worker (workflows.Lanes); one process runs all lanes.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"golang.org/x/sync/semaphore"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/nodewatch"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// Options holds the dependencies and settings of a worker.
type Options struct {
	Temporal  client.Client
	Namespace string        // the namespace of Temporal; "" means "default"
	Hub       workflows.Hub // must be the hub of the Backend
	TaskQueue string        // the argument of Hub.TaskQueue: the common prefix of the task queues
	Catalog   activities.Catalog
	Backend   backend.Backend
	Logger    *slog.Logger // nil means slog.Default()
	// StopTimeout is the longest time for which a stopping worker waits for the end of its running activities.
	// Temporal retries an interrupted activity on another worker. 0 means 10s.
	StopTimeout time.Duration
	// Started, if any, is called once the workers of all lanes poll. It must not block.
	Started func()
	// SearchAttributes sets the search attributes on each workflow that this worker starts. Run then first waits until the
	// namespace has the attributes, and calls Waiting, if any, with the reason of each wait.
	SearchAttributes bool
	Waiting          func(why error)

	// Slots bounds the number of nodes and peerings that this worker creates concurrently; 0 means 200. It also bounds
	// the number of concurrent removals, which is never more than 100.
	Slots int
	// DriverSlots bounds the number of concurrent workflow tasks of drivers, the number of their concurrent short
	// activities, and the number of workflow starts that entities request concurrently. 0 means a number between 4 and
	// 64 that depends on the round trip to Temporal at the start of Run.
	DriverSlots int

	// Version is the version of this worker in a Temporal Worker Deployment. The worker receives new tasks while this
	// version is current. When another version is current, the worker receives only the tasks that are pinned to its
	// own version. The zero value means a worker without versioning.
	Version worker.WorkerDeploymentVersion

	// ProbeURL is a URL outside this cluster. When the only provider does not answer, the worker requests the URL to find
	// out whether this cluster's own network works. "" disables the probe.
	ProbeURL string
	// Cluster is the UID of the consumer cluster, for which the worker claims the hub. "" disables the claim.
	Cluster string
	// Lead waits until this process holds the hub's Lease and then calls work; it repeats this until ctx ends. nil means
	// that this worker leads without a Lease.
	Lead func(ctx context.Context, work func(ctx context.Context))
	// Observer, if any, is run while this worker leads. Run sets the observer's clients, backend and catalog. The
	// caller sets the other fields.
	Observer *observer.Observer
	// Publish, if any, publishes the market until ctx ends. The worker calls it while it leads.
	Publish func(ctx context.Context, entities market.Entities, observed market.Observed)
	// Differing, if any, counts the Nodes that differ from the template that Cluster Autoscaler received.
	Differing *nodewatch.Differing
	// Events, if any, records the progress of steps as Kubernetes Events.
	Events activities.EventRecorder

	onFatal func(error) // called once, when the SDK stops the worker permanently
}

// These constants are the sizes of the lanes' workers. In a burst the bottleneck is Temporal, not the worker: if
// drivers (the scale-out and scale-in workflows) have few slots, Temporal answers the groups' updates faster. Each
// workflow start uses Temporal's database, and so delays the reads for CA's Refresh. Without a bound, two hundred
// starts waited for the database when fifty groups grew at the same time.
const (
	makingSlots   = 200
	removingSlots = 100
	// perProvider bounds the number of slots that one provider may occupy in the lane for the creation of nodes and
	// peerings, so that a slow or dead provider leaves slots to other providers.
	perProvider = 20
)

// steps returns the activities of all lanes.
func steps(o Options, messages *flow.Messages, entities *flow.Entities) *activities.Activities {
	slots := o.slots()
	return &activities.Activities{
		Catalog: o.Catalog, Backend: o.Backend, Messages: messages, Entities: entities,
		Workflows: flow.NewSingle(o.Temporal, o.Hub, o.TaskQueue, o.SearchAttributes),
		Making:    activities.NewLimiter(max(1, min(perProvider, slots/2))),
		Removing:  activities.NewLimiter(max(1, min(removingSlots, slots)/2)),
		Starting:  semaphore.NewWeighted(int64(max(near, o.DriverSlots))),
		FanOut:    max(near, o.DriverSlots),
		Probe:     probe(o.ProbeURL), Events: o.Events, Records: o.records(),
	}
}

// records returns a reader of the observer's saved data, or nil without such data.
func (o Options) records() activities.Records {
	if o.Observer == nil || o.Observer.Memory == nil {
		return nil
	}
	return &observer.Records{Memory: o.Observer.Memory, Costs: o.Observer.Costs, Positions: o.Observer.Positions}
}

// slots returns the number of nodes and peerings that the worker creates concurrently.
func (o Options) slots() int {
	if o.Slots <= 0 {
		return makingSlots
	}
	return o.Slots
}

// lanes creates the workers of all lanes and does not start them.
func lanes(o Options, a *activities.Activities) (all []worker.Worker) {
	queue := o.Hub.TaskQueue(o.TaskQueue)
	for _, lane := range workflows.Lanes {
		w := worker.New(o.Temporal, lane.Queue(queue), laneOptions(o, lane, o.slots()))
		register(w, lane, a, workflows.Cluster(o.Cluster))
		all = append(all, w)
	}
	return all
}

// laneOptions returns the SDK's options for the worker of a lane.
func laneOptions(o Options, lane workflows.Lane, slots int) worker.Options {
	options := worker.Options{
		StickyScheduleToStartTimeout: 5 * time.Second,
		DeadlockDetectionTimeout:     deadlockAfter(),
		// A step receives its cancellation with the answer to a heartbeat. By default the SDK delays heartbeats for most of
		// the heartbeat timeout.
		MaxHeartbeatThrottleInterval:     time.Second,
		DefaultHeartbeatThrottleInterval: time.Second,
		WorkerStopTimeout:                cmp.Or(o.StopTimeout, 10*time.Second),
		WorkflowTaskPollerBehavior:       pollers(),
		ActivityTaskPollerBehavior:       pollers(),
		DisableRegistrationAliasing:      true,
		OnFatalError:                     o.onFatal,
		DeploymentOptions:                deploymentOptions(o.Version),
	}
	switch lane {
	case workflows.LaneEntities:
	case workflows.LaneDrivers:
		options.MaxConcurrentWorkflowTaskExecutionSize = max(2, o.DriverSlots) // the SDK needs at least two
		options.MaxConcurrentActivityExecutionSize = o.DriverSlots
		options.MaxConcurrentLocalActivityExecutionSize = o.DriverSlots
	case workflows.LaneMaking:
		options.DisableWorkflowWorker = true
		options.MaxConcurrentActivityExecutionSize = slots
	case workflows.LaneRemoving:
		options.DisableWorkflowWorker = true
		options.MaxConcurrentActivityExecutionSize = min(removingSlots, slots)
	}
	return options
}

// deadlockAfter returns the time after which the SDK fails a workflow task that does not yield. The SDK's default of
// one second is too short on a machine with too little CPU, where the retry of the failed task adds load. With the
// variable TEMPORAL_DEBUG it returns 0: the SDK then applies its own rule for this variable and never fails a task.
func deadlockAfter() time.Duration {
	if os.Getenv("TEMPORAL_DEBUG") != "" {
		return 0
	}
	return workflows.WorkflowTaskTimeout - time.Second
}

// pollers returns a behavior that adapts the number of pollers to the load. A fixed small number is too low in a burst.
// With a fixed large number, a worker that hangs receives many tasks, which then wait for their timeouts.
func pollers() worker.PollerBehavior {
	return worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 4, MinimumNumberOfPollers: 2, MaximumNumberOfPollers: 20,
	})
}

// Run runs a worker for each lane until the context ends. While this process leads the hub, Run also runs the observer
// and publishes the market. Run returns an error when Temporal permanently refuses a worker, for example because the
// namespace was deleted. It also returns an error when the hub belongs to another cluster.
func Run(parent context.Context, o Options) error {
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	o.onFatal = end
	logger := cmp.Or(o.Logger, slog.Default())
	if o.SearchAttributes {
		if err := searchattr.Await(ctx, searchattr.Options{Temporal: o.Temporal, Namespace: o.Namespace, Logger: logger,
			Waiting: o.Waiting}); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
	}
	if err := claim(ctx, o, logger); err != nil {
		return err
	}
	if o.DriverSlots <= 0 {
		var err error
		if o.DriverSlots, err = driverSlots(ctx, o.Temporal, logger); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
	}
	messages := flow.NewMessages(o.Temporal, o.Hub, o.TaskQueue)
	entities := flow.NewEntities(o.Temporal, o.Hub, o.TaskQueue)
	a := steps(o, messages, entities)
	var ending sync.WaitGroup
	defer ending.Wait()
	for _, w := range lanes(o, a) {
		if err := try(ctx, logger, w.Start); err != nil {
			return fmt.Errorf("start worker: %w", err)
		}
		defer ending.Go(w.Stop) // concurrently: each may take StopTimeout when Temporal does not answer
	}
	if o.Started != nil {
		o.Started()
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { observe(ctx, o, a, messages, entities, logger) })
	if versioned(o.Version) {
		watching.Go(func() { watchVersion(ctx, o.Temporal.WorkerDeploymentClient(), o.Version, logger) })
	}
	watching.Go(func() {
		nodewatch.Run(ctx, nodewatch.Options{Watcher: o.Backend, Logger: logger, Differing: o.Differing, Events: o.Events,
			Groups: factsTo{messages}})
	})
	<-ctx.Done()
	if parent.Err() == nil {
		return fmt.Errorf("run worker: %w", context.Cause(ctx))
	}
	return nil
}

// factsTo implements nodewatch.Groups: it converts fleet.ErrNotRunning into nodewatch.ErrNoGroup.
type factsTo struct{ groups *flow.Messages }

func (f factsTo) Fact(ctx context.Context, group string, fact fleet.Fact) error {
	err := f.groups.Fact(ctx, group, fact)
	if errors.Is(err, fleet.ErrNotRunning) {
		return fmt.Errorf("%w: %w", nodewatch.ErrNoGroup, err)
	}
	return err
}

// try calls the function `do` every two seconds until it succeeds or the context ends. It returns the last error if
// the context ends.
func try(ctx context.Context, logger *slog.Logger, do func() error) error {
	for {
		err := do()
		if err == nil {
			return nil
		}
		logger.Warn("the worker cannot start yet; trying again", "error", err)
		if !wait.For(ctx, 2*time.Second) {
			return err
		}
	}
}
