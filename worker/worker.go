// Package worker wires workflows, activities and backends together and runs them.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/nodewatch"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/searchattr"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Options are what a worker needs.
type Options struct {
	Temporal  client.Client
	Namespace string        // the one that Temporal has; "" means "default"
	Hub       workflows.Hub // the installation; as the Backend's
	TaskQueue string        // as Hub.TaskQueue has it
	Catalog   activities.Catalog
	Backend   backend.Backend
	Logger    *slog.Logger // nil means slog.Default()
	// StopTimeout is how long running activities may take to end at shutdown; they go on elsewhere. 0 means 10s.
	StopTimeout time.Duration
	// Started, if any, is called once the worker polls. It must not block.
	Started func()
	// SearchAttributes says whether workflows set search attributes; "" means searchattr.Auto.
	SearchAttributes searchattr.Mode

	// AdoptEvery is how often peerings of ours are looked through for those without a provider entity. 0 means 5 minutes.
	AdoptEvery time.Duration

	onFatal func(error) // told once, when the SDK stops the worker for good
}

// New makes a worker, not yet started. Its workflows ask registered whether the namespace has our search attributes.
func New(o Options, registered func() bool) worker.Worker {
	queue := o.Hub.TaskQueue(o.TaskQueue)
	stop := o.StopTimeout
	if stop <= 0 {
		stop = 10 * time.Second
	}
	w := worker.New(o.Temporal, queue, worker.Options{
		// An update must not wait for a worker that was killed: CA gives up after 5s.
		StickyScheduleToStartTimeout: time.Second,
		// A cancelled step must hear of it soon; the SDK otherwise holds heartbeats back for most of their timeout.
		MaxHeartbeatThrottleInterval:       time.Second,
		DefaultHeartbeatThrottleInterval:   time.Second,
		WorkerStopTimeout:                  stop,
		MaxConcurrentActivityExecutionSize: 500,
		DisableRegistrationAliasing:        true,
		OnFatalError:                       o.onFatal,
	})
	workflows.Register(w, &activities.Activities{
		Catalog: o.Catalog, Backend: o.Backend, Holds: flow.NewProviders(o.Temporal, o.Hub, o.TaskQueue),
	}, registered)
	return w
}

// Run runs a worker until the context ends, and fails when Temporal will have it no longer, as when its namespace is
// deleted. Peerings of ours get their provider entity, whenever Temporal has none, so that none outlives its use.
func Run(parent context.Context, o Options) error {
	ctx, end := context.WithCancelCause(parent)
	defer end(nil)
	o.onFatal = end
	logger := o.Logger
	if logger == nil {
		logger = slog.Default()
	}
	attributes, err := searchattr.Open(ctx, searchattr.Options{Temporal: o.Temporal, Namespace: o.Namespace, Mode: o.SearchAttributes, Logger: logger})
	if err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	w := New(o, attributes.Registered)
	if err := start(ctx, w, logger); err != nil {
		return err
	}
	defer w.Stop()
	if o.Started != nil {
		o.Started()
	}
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { attributes.Watch(ctx) })
	if watcher, ok := o.Backend.(backend.Watcher); ok {
		groups := factsTo{flow.NewGroups(o.Temporal, o.Hub, o.TaskQueue)}
		watching.Go(func() { nodewatch.Run(ctx, nodewatch.Options{Watcher: watcher, Groups: groups, Logger: logger}) })
	}
	watching.Go(func() { adopt(ctx, o, logger) })
	<-ctx.Done()
	if parent.Err() == nil {
		return fmt.Errorf("run worker: %w", context.Cause(ctx))
	}
	return nil
}

// factsTo tells nodewatch in its own words that a group does not run.
type factsTo struct{ groups *flow.Groups }

func (f factsTo) Fact(ctx context.Context, group string, fact fleet.Fact) error {
	err := f.groups.Fact(ctx, group, fact)
	if errors.Is(err, fleet.ErrUnavailable) {
		return fmt.Errorf("%w: %w", nodewatch.ErrNoGroup, err)
	}
	return err
}

// start starts the worker, however long Temporal takes to answer.
func start(ctx context.Context, w worker.Worker, logger *slog.Logger) error {
	for {
		err := w.Start()
		if err == nil {
			return nil
		}
		logger.Warn("Temporal does not answer; trying again", "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("start worker: %w", err)
		case <-time.After(2 * time.Second):
		}
	}
}
