package metrics

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
)

// A step ends with one of these codes or one of fleet.Codes.
const (
	// OK means that the step has reached its goal.
	OK = "OK"
	// Stopped means that the step was interrupted and will run again: its worker stops, or an operator paused it.
	Stopped = "Stopped"
	// Busy means that the worker already ran its maximum of steps for this provider; the step is retried.
	Busy = activities.TypeBusy
	// Unconfirmed means that the instance's group has not yet confirmed that it still needs the node.
	Unconfirmed = activities.TypeUnconfirmed
)

// MaxProviders bounds the number of providers in labels. All further providers share the label OtherProviders.
const (
	MaxProviders   = 200
	OtherProviders = "other"
)

// stepSeconds holds the bounds of a step's buckets in seconds: a discovery takes milliseconds, a drain takes minutes.
var stepSeconds = []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 90, 120, 300, 600}

// Steps measures activities. Each run of an activity is one step, including each retry.
type Steps struct {
	interceptor.InterceptorBase
	duration  *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	providers *prometheus.CounterVec
	running   *prometheus.GaugeVec
	clocks    *Clocks

	mu    sync.Mutex
	known map[string]bool // providers with a label of their own
}

var _ interceptor.Interceptor = (*Steps)(nil)

// NewSteps returns a Steps and registers its metrics. The caller adds it to client.Options.Interceptors; all workers of
// that client then use it. The Steps also saves the difference between this worker's clock and Temporal's clock in
// clocks.
func NewSteps(reg prometheus.Registerer, clocks *Clocks) (*Steps, error) {
	s := &Steps{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: registry.Namespace, Name: "step_duration_seconds", Buckets: stepSeconds,
			Help: "Duration of one run of a step, by the code with which it ended.",
		}, []string{"step", "code"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: registry.Namespace, Name: "step_failures_total",
			Help: "Runs of a step that did not succeed, by code. Each retry counts. A cancelled run has the code Timeout.",
		}, []string{"step", "code"}),
		providers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: registry.Namespace, Name: "provider_failures_total",
			Help: "Runs of a step with a provider that did not succeed, by code; a run that Cluster Autoscaler or an operator " +
				"cancels counts as Timeout.",
		}, []string{"provider", "code"}),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: registry.Namespace, Name: "steps_running",
			Help: "Steps that this worker is running.",
		}, []string{"step"}),
		known: map[string]bool{}, clocks: clocks,
	}
	for _, c := range []prometheus.Collector{s.duration, s.failures, s.providers, s.running} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (s *Steps) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &measured{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, steps: s}
}

type measured struct {
	interceptor.ActivityInboundInterceptorBase
	steps *Steps
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor. It counts a panic of the activity as Internal,
// and does not recover the panic.
func (m *measured) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (result any, err error) {
	info := activity.GetInfo(ctx)
	step, began := info.ActivityType.Name, time.Now()
	if !info.IsLocalActivity {
		m.steps.clocks.Set(ClockOfTemporal, began.Sub(info.StartedTime))
	}
	m.steps.running.WithLabelValues(step).Inc()
	code, provider := string(fleet.CodeInternal), ""
	defer func() {
		m.steps.running.WithLabelValues(step).Dec()
		m.steps.count(step, code, provider, time.Since(began))
	}()
	result, err = m.Next.ExecuteActivity(ctx, in)
	code, provider = outcome(ctx, result, err)
	return result, err
}

func (s *Steps) count(step, code, provider string, took time.Duration) {
	s.duration.WithLabelValues(step, code).Observe(took.Seconds())
	if code == OK || code == Stopped || code == Busy || code == Unconfirmed {
		return
	}
	s.failures.WithLabelValues(step, code).Inc()
	if provider != "" {
		s.providers.WithLabelValues(s.bounded(provider), code).Inc()
	}
}

// bounded returns the label for a provider: its own id for the first MaxProviders providers, or OtherProviders.
func (s *Steps) bounded(provider string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known[provider] {
		if len(s.known) >= MaxProviders {
			return OtherProviders
		}
		s.known[provider] = true
	}
	return provider
}

// outcome returns the code and the provider of an activity's result. Package activities writes the code into the type
// of its errors, and the provider into their details.
func outcome(ctx context.Context, result any, err error) (code, provider string) {
	if err == nil {
		if chosen, ok := result.(activities.SelectOutput); ok && chosen.Failure != nil {
			return known(string(chosen.Failure.Code)), chosen.Failure.Provider
		}
		return OK, ""
	}
	var app *temporal.ApplicationError
	if !errors.As(err, &app) {
		if stopped(ctx) || errors.Is(err, context.Canceled) || temporal.IsCanceledError(err) {
			return Stopped, ""
		}
		return string(fleet.CodeInternal), ""
	}
	var detail any // Details panics if this type differs from the type that the activity used
	if app.HasDetails() && app.Details(&detail) == nil {
		if f, ok := detail.(*fleet.Failure); ok && f != nil {
			provider = f.Provider
		}
	}
	return known(app.Type()), provider
}

// known returns the given code if it is a defined one, and Internal otherwise.
func known(code string) string {
	if code == Busy || code == Unconfirmed {
		return code
	}
	return string(fleet.Code(code).Row().Code)
}

func stopped(ctx context.Context) bool {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return true
	default:
		return false
	}
}
