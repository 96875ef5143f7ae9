package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/leader"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// claimBound limits the duration of one attempt to claim the hub.
const claimBound = 10 * time.Second

// claim claims the hub for the worker's cluster, and retries until Temporal answers. It returns an error when the hub
// belongs to another cluster: two clusters with one hub would each treat the other cluster's nodes as lost.
func claim(ctx context.Context, o Options, logger *slog.Logger) error {
	if o.Cluster == "" {
		return nil
	}
	hub := flow.NewHub(o.Temporal, o.Hub, o.TaskQueue)
	var other error
	err := try(ctx, logger, func() error {
		bounded, cancel := context.WithTimeout(ctx, claimBound)
		defer cancel()
		_, err := hub.Claim(bounded, o.Cluster)
		if errors.Is(err, flow.ErrOtherCluster) {
			other, err = err, nil
		}
		return err
	})
	if err = errors.Join(err, other); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	return nil
}

// observe runs the observer, publishes the market and writes the mirror while this process leads the hub. It blocks
// until ctx ends.
func observe(ctx context.Context, o Options, a *activities.Activities, messages *flow.Messages,
	entities *flow.Entities, logger *slog.Logger) {
	run := o.Observer
	if run == nil {
		run = &observer.Observer{}
	}
	run.Entities, run.Messages, run.Backend, run.Catalog = entities, messages, o.Backend, o.Catalog
	run.Events, run.Logger = o.Events, logger
	run.Accounts = struct {
		*flow.Groups
		*flow.Hub
	}{flow.NewGroups(o.Temporal, o.Hub, o.TaskQueue), flow.NewHub(o.Temporal, o.Hub, o.TaskQueue)}
	witness := activities.Witness{Backend: o.Backend, Catalog: o.Catalog, Probe: a.Probe}
	run.Witness = func(ctx context.Context, silent []string) (bool, error) {
		answers, _, err := witness.Answers(ctx, silent)
		return answers, err
	}
	if o.Cluster != "" {
		hub := flow.NewHub(o.Temporal, o.Hub, o.TaskQueue)
		run.Hub = func(ctx context.Context) (workflows.HubState, error) {
			s, err := hub.Claim(ctx, o.Cluster)
			if errors.Is(err, flow.ErrOtherCluster) {
				o.onFatal(err)
			}
			return s, err
		}
	}
	work := func(ctx context.Context) {
		ctx, end := context.WithCancel(ctx)
		var publishing sync.WaitGroup
		defer publishing.Wait()
		defer end()
		if o.Publish != nil {
			publishing.Go(func() { o.Publish(ctx, entities, observed{run, a}) })
		}
		if run.Mirror != nil {
			publishing.Go(func() { run.Mirror.Run(ctx) })
		}
		run.Run(ctx)
	}
	if o.Lead != nil {
		o.Lead(ctx, work)
		return
	}
	for work(ctx); wait.For(ctx, leader.Rest); {
		work(ctx)
	}
}

// observed implements market.Observed. It combines the observer's data with the providers that this worker's
// scale-outs chose recently.
type observed struct {
	*observer.Observer
	steps *activities.Activities
}

func (o observed) Active(provider string) (active, known bool) {
	active, known = o.Observer.Active(provider)
	return active || o.steps.Chose(provider), known
}
