// Package parts creates the components of a hub's processes from command-line flags. The components are the sources
// of offers, the market, the backends, a Temporal client with metrics, and TLS for Cluster Autoscaler.
package parts

import (
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/nodewatch"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// Monitor serves the metrics and the health checks of a hub's process, including the metrics of its Temporal client.
type Monitor struct {
	*serve.Monitor
	// Dial sets Conditions and the next four fields for a worker. They are nil for other processes.
	Conditions *activities.Conditions
	Pods       *observer.Pods
	Kept       *observer.Kept
	Rounds     *observer.Observer
	Differing  *nodewatch.Differing
	Clocks     *metrics.Clocks
	log        *slog.Logger
	traces     *trace.TracerProvider // nil without traces
}

// Open listens on the addresses in the flags, as serve.ObserveFlags.Open does.
func Open(f serve.ObserveFlags, log *slog.Logger) (*Monitor, error) {
	o, err := f.Open(log)
	if err != nil {
		return nil, err
	}
	return &Monitor{Monitor: o, log: log, Clocks: &metrics.Clocks{}}, nil
}

// Close closes the listeners, and exports the remaining traces. It is for a Monitor whose Serve is not called.
func (o *Monitor) Close() {
	o.Monitor.Close()
	endTraces(o.traces)
}

// Dial returns a Temporal client with the settings of c. The client connects at its first use, and the Monitor serves
// its metrics. steps is true for a worker: then the Monitor also measures activities and scale-outs.
func (o *Monitor) Dial(c *connect.Common, logger *slog.Logger, steps bool) (client.Client, *connect.Target, error) {
	measured, err := o.measured(steps)
	if err != nil {
		return nil, nil, err
	}
	return c.Dial(logger, measured)
}

// measured registers the metrics, and returns a function that adds metrics and traces to a client's options. If steps
// is true, the workers of this client also measure their activities and scale-outs.
func (o *Monitor) measured(steps bool) (func(*client.Options), error) {
	handler, err := metrics.Temporal(o.Registry,
		func(err error) { o.log.Warn("cannot export a metric of the Temporal SDK", "error", err) })
	if err != nil {
		return nil, err
	}
	interceptors, err := o.trace()
	if err != nil {
		return nil, err
	}
	if steps {
		measure, err := metrics.NewSteps(o.Registry, o.Clocks)
		if err != nil {
			return nil, err
		}
		scaleOuts, err := metrics.NewScaleOuts(o.Registry)
		if err != nil {
			return nil, err
		}
		interceptors = append(interceptors, measure, scaleOuts)
		o.Conditions = &activities.Conditions{}
		o.Differing = &nodewatch.Differing{}
		o.Pods = &observer.Pods{}
		o.Kept = &observer.Kept{}
		o.Rounds = &observer.Observer{Conditions: o.Conditions, Pods: o.Pods, Kept: o.Kept}
		if err := errors.Join(o.Clocks.Register(o.Registry),
			metrics.NewConditions(o.Registry, o.Conditions.Of, o.Conditions.Orphans),
			metrics.NewDiffering(o.Registry, o.Differing.Of), metrics.NewRounds(o.Registry, o.Rounds.Progress),
			metrics.NewPods(o.Registry, o.Pods.Waiting)); err != nil {
			return nil, err
		}
	}
	return func(options *client.Options) {
		options.MetricsHandler = handler
		options.Interceptors = append(options.Interceptors, interceptors...)
	}, nil
}

// findings returns the findings that a worker publishes together with the offers. Only people read them; no process
// depends on them.
func (o *Monitor) findings() market.Findings {
	p := o.Rounds.Progress()
	found := market.Findings{Nodes: o.Differing.Nodes(), Observer: &market.Rounds{Failed: p.Failed, Unread: p.Unread,
		Paused: p.Paused}}
	for of, ahead := range o.Clocks.Ahead() {
		if found.Observer.ClockAhead == nil {
			found.Observer.ClockAhead = map[string]int64{}
		}
		found.Observer.ClockAhead[of] = int64(ahead.Round(time.Second) / time.Second)
	}
	if !p.Complete.IsZero() {
		found.Observer.Complete = p.Complete.UTC().Round(0)
	}
	waiting, _ := o.Pods.Waiting(time.Now())
	for _, p := range waiting {
		found.Pods = append(found.Pods, market.PodsWaiting{Provider: p.Provider, Group: p.Group, Verdict: string(p.Verdict),
			Count: p.Count, Overdue: p.Overdue, Pod: p.Pod, Since: p.Since.UTC().Round(time.Second), Why: p.Why})
	}
	for _, k := range o.Kept.Nodes() {
		found.Kept = append(found.Kept, market.KeptNode(k))
	}
	for _, left := range o.Conditions.Orphans(time.Now()) {
		found.Left = append(found.Left, market.Left{Provider: left.Attempt.Provider.ID, Object: left.Object,
			Since: left.Since.UTC(), KeptBecause: left.KeptBecause})
	}
	return found
}

// trace creates the exporter of traces, and returns the interceptors that create traces for a Temporal client. It
// returns nil if traces are disabled.
func (o *Monitor) trace() (interceptors []interceptor.ClientInterceptor, err error) {
	if o.traces, err = openTraces(o.log); err != nil || o.traces == nil {
		return nil, err
	}
	tracing, err := flow.NewTracing(o.traces)
	return []interceptor.ClientInterceptor{tracing}, err
}
