package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// scaleOutSeconds holds the bounds of the buckets of scale-outs, in seconds. A node takes between a second (with an
// existing peering) and a quarter of an hour, after which Cluster Autoscaler gives up. From 6 s on, adjacent bounds
// differ by about a third, so a quantile is wrong by about a third at most.
var scaleOutSeconds = []float64{1, 2, 4, 6, 8, 10, 13, 17, 22, 30, 40, 55, 75, 100, 130, 170, 225, 300, 400, 530, 700,
	900}

// ScaleOuts measures the time from the booking of an instance until its scale-out ends, by the outcome: Ready, or the
// failure code. The times of booking and end come from the workflow's clock. A scale-out that its group stopped has no
// outcome and is not counted. A run that an operator reset is not counted, either.
type ScaleOuts struct {
	interceptor.InterceptorBase
	duration *prometheus.HistogramVec
}

var _ interceptor.Interceptor = (*ScaleOuts)(nil)

// NewScaleOuts returns a ScaleOuts and registers its metric. The caller adds it to client.Options.Interceptors.
func NewScaleOuts(reg prometheus.Registerer) (*ScaleOuts, error) {
	s := &ScaleOuts{duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: registry.Namespace, Name: "scale_out_duration_seconds", Buckets: scaleOutSeconds,
		Help: "Time from the booking of an instance until it was Ready or had failed, by outcome: Ready or the failure code.",
	}, []string{"outcome"})}
	return s, reg.Register(s.duration)
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (s *ScaleOuts) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &timed{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, of: s}
}

type timed struct {
	interceptor.WorkflowInboundInterceptorBase
	of *ScaleOuts
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor. It measures nothing during a replay.
func (t *timed) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	result, err := t.Next.ExecuteWorkflow(ctx, in)
	kind := workflow.GetInfo(ctx).WorkflowType.Name
	if kind != workflows.TypeScaleOut || workflow.IsReplaying(ctx) || len(in.Args) == 0 {
		return result, err
	}
	started, ok := in.Args[0].(fleet.DriverInput)
	if outcome := ended(result, err); ok && outcome != "" {
		t.of.duration.WithLabelValues(outcome).Observe(workflow.Now(ctx).Sub(started.Instance.BookedAt).Seconds())
	}
	return result, err
}

// ended returns the outcome of a scale-out, or "" for a scale-out without an outcome.
func ended(result any, err error) string {
	var app *temporal.ApplicationError
	o, _ := result.(workflows.Outcome)
	switch {
	case err == nil && o.Phase == fleet.Ready:
		return string(fleet.Ready)
	case err == nil && o.Phase == fleet.Failed, errors.As(err, &app) && app.Type() == workflows.TypeInstanceFailed:
		return known(string(o.Code))
	}
	return ""
}
