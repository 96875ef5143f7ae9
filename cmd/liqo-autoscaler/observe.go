package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/nodewatch"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/podwatch"
)

// observeFlags say where a process shows its metrics and its health.
type observeFlags struct{ metrics, health string }

// register adds the flags, on the given host by default; "" means all addresses.
func (f *observeFlags) register(cmd *cobra.Command, host string) {
	cmd.Flags().StringVar(&f.metrics, "metrics-listen", host+":9090",
		`address to serve /metrics on, for Prometheus; "" for none`)
	cmd.Flags().StringVar(&f.health, "health-listen", host+":8081",
		`address to serve /healthz and /readyz on; "" for none`)
}

// check is a named health check; nil means healthy.
type check struct {
	name string
	look func(context.Context) error
}

// checkLimit bounds a look at everything: the kubelet by default gives up after a second.
const checkLimit = 900 * time.Millisecond

// observer shows how a process is. Make it with open, add what there is to see, and serve it.
type observer struct {
	registry        *prometheus.Registry
	metrics, health net.Listener // nil: not served
	live, ready     []check
	conditions      *activities.Conditions // of a worker, as differing
	differing       *nodewatch.Differing
	pods            *podwatch.Watch
	log             *slog.Logger
	traces          *trace.TracerProvider // nil: none
}

// open listens, so that a port that is taken is known before anything runs. Serve the observer, or close it.
func (f observeFlags) open(log *slog.Logger) (*observer, error) {
	o := &observer{registry: metrics.NewRegistry(version), log: log}
	var err error
	if o.metrics, err = listenFor("metrics", f.metrics, "--metrics-listen"); err != nil {
		return nil, err
	}
	if o.health, err = listenFor("health checks", f.health, "--health-listen"); err != nil {
		o.unlisten()
		return nil, err
	}
	return o, nil
}

func listenFor(what, address, flag string) (net.Listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf(`listen for %s: %w (give another address with %s, or %s "" for none)`, what, err, flag, flag)
	}
	return l, nil
}

// close frees the addresses of an observer that is not served, and exports what traces are left.
func (o *observer) close() {
	o.unlisten()
	endTraces(o.traces)
}

func (o *observer) unlisten() {
	for _, l := range []net.Listener{o.metrics, o.health} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// metricsURL and healthURL are for people; "off" when they are not served.
func (o *observer) metricsURL() string { return url(o.metrics, "/metrics") }

func (o *observer) healthURL() string { return url(o.health, "/readyz") }

func url(l net.Listener, path string) string {
	if l == nil {
		return "off"
	}
	return "http://" + l.Addr().String() + path
}

// alive adds a liveness check, readyWhen a readiness check.
func (o *observer) alive(name string, look func(context.Context) error) {
	o.live = append(o.live, check{name, look})
}

func (o *observer) readyWhen(name string, look func(context.Context) error) {
	o.ready = append(o.ready, check{name, look})
}

// temporal has a client measured and traced, and with steps the activities of its workers.
func (o *observer) temporal(steps bool) (func(*client.Options), error) {
	handler, err := metrics.Temporal(o.registry,
		func(err error) { o.log.Warn("a metric of the Temporal SDK is not exported", "error", err) })
	if err != nil {
		return nil, err
	}
	interceptors, err := o.trace()
	if err != nil {
		return nil, err
	}
	if steps {
		measure, err := metrics.NewSteps(o.registry)
		if err != nil {
			return nil, err
		}
		interceptors = append(interceptors, measure)
		o.conditions = &activities.Conditions{}
		o.differing, o.pods = &nodewatch.Differing{}, &podwatch.Watch{Logger: o.log}
		if err := errors.Join(metrics.NewConditions(o.registry, o.conditions.Of, o.conditions.Orphans),
			metrics.NewDiffering(o.registry, o.differing.Of), metrics.NewMisjudged(o.registry, o.pods.Of)); err != nil {
			return nil, err
		}
	}
	return func(options *client.Options) {
		options.MetricsHandler = handler
		options.Interceptors = append(options.Interceptors, interceptors...)
	}, nil
}

// findings is what a worker tells people in addition to the offers.
func (o *observer) findings(ctx context.Context, offers []market.Offer) market.Findings {
	found := market.Findings{Nodes: o.differing.Nodes(), Pods: o.pods.Look(ctx, offers)}
	for _, left := range o.conditions.Orphans(time.Now()) {
		found.Left = append(found.Left, market.Left{Provider: left.Attempt.Provider.ID, What: left.What,
			Since: left.Since.UTC(), Kept: left.Kept})
	}
	return found
}

// serve answers until ctx ends, and then lets requests under way finish. It closes the listeners.
func (o *observer) serve(ctx context.Context) error {
	defer o.unlisten()
	g, ctx := errgroup.WithContext(ctx)
	if o.metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", promhttp.HandlerFor(o.registry, promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError, ErrorLog: promLog{o.log}, Registry: o.registry, MaxRequestsInFlight: 5,
		}))
		g.Go(func() error { return serveHTTP(ctx, o.metrics, mux) })
	}
	if o.health != nil {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /healthz", verdict(o.live))
		mux.HandleFunc("GET /readyz",
			verdict(append(o.ready, check{"running", func(context.Context) error { return ctx.Err() }})))
		g.Go(func() error { return serveHTTP(ctx, o.health, mux) })
	}
	g.Go(func() error { <-ctx.Done(); return nil }) // also when neither is served
	return g.Wait()
}

// verdict answers 200 when all is well, else 503 with what is not.
func verdict(checks []check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), checkLimit)
		defer cancel()
		var wrong []string
		for _, c := range checks {
			if err := c.look(ctx); err != nil {
				wrong = append(wrong, c.name+": "+err.Error())
			}
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if len(wrong) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, strings.Join(wrong, "\n"))
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

// serveHTTP is graceful for a second: nothing here takes longer.
func serveHTTP(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	}()
	err := server.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	return fmt.Errorf("serve %s: %w", l.Addr(), err)
}

// promLog is where promhttp says that a metric could not be collected.
type promLog struct{ log *slog.Logger }

// Println implements promhttp.Logger.
func (l promLog) Println(v ...any) { l.log.Warn("metrics not collected", "error", fmt.Sprint(v...)) }
