// Package serve contains parts that all long-running processes have: metrics, health checks, the access to a cluster,
// and the flags for a client of the discovery server.
package serve

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
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connlimit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/registry"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// ObserveFlags holds the addresses on which a process serves its metrics and its health checks.
type ObserveFlags struct{ Metrics, Health string }

// Register adds the flags. host is the host of the default addresses; "" means all addresses of this machine.
func (f *ObserveFlags) Register(cmd *cobra.Command, host string) {
	cmd.Flags().StringVar(&f.Metrics, "metrics-listen", host+":9090",
		`address to serve /metrics on, for Prometheus; "" for none`)
	cmd.Flags().StringVar(&f.Health, "health-listen", host+":8081",
		`address to serve /healthz and /readyz on; "" for none`)
}

// check is a named health check. run returns nil for a healthy process.
type check struct {
	name string
	run  func(context.Context) error
}

// Monitor serves the metrics and the health checks of a process over HTTP. Open creates a Monitor. The caller
// registers metrics and checks before it calls Serve.
type Monitor struct {
	Registry        *prometheus.Registry
	Hub             string       // value of the label hub on each metric; "" adds no label
	Metrics, Health net.Listener // nil if the metrics or the health checks are not served
	live, ready     []check
	log             *slog.Logger
}

// Open listens on the addresses. If an address is in use, Open fails, before the process has started its work. The
// caller must call Serve or Close afterwards.
func (f ObserveFlags) Open(log *slog.Logger) (*Monitor, error) {
	o := &Monitor{Registry: registry.New(cli.Version), log: log}
	var err error
	if o.Metrics, err = listenFor("metrics", f.Metrics, "--metrics-listen"); err != nil {
		return nil, err
	}
	if o.Health, err = listenFor("health checks", f.Health, "--health-listen"); err != nil {
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

// Close closes the listeners of a Monitor. It is for a Monitor whose Serve is not called.
func (o *Monitor) Close() { o.unlisten() }

func (o *Monitor) unlisten() {
	for _, l := range []net.Listener{o.Metrics, o.Health} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// MetricsURL returns the URL of the metrics for a message, or "off" if they are not served.
func (o *Monitor) MetricsURL() string { return url(o.Metrics, "/metrics") }

// HealthURL returns the URL of the readiness check for a message, or "off" if health checks are not served.
func (o *Monitor) HealthURL() string { return url(o.Health, "/readyz") }

func url(l net.Listener, path string) string {
	if l == nil {
		return "off"
	}
	return "http://" + l.Addr().String() + path
}

// Alive adds a liveness check. The Monitor calls run for each request; run must not block.
func (o *Monitor) Alive(name string, run func(context.Context) error) {
	o.live = append(o.live, check{name, run})
}

// ReadyWhen adds a readiness check. The Monitor calls run for each request; run must not block.
func (o *Monitor) ReadyWhen(name string, run func(context.Context) error) {
	o.ready = append(o.ready, check{name, run})
}

// ReadyWhenRemote adds a readiness check that sends a request to another process. The Monitor calls run at most once
// a second, and cancels the call after wait.CheckLimit.
func (o *Monitor) ReadyWhenRemote(name string, run func(context.Context) error) {
	o.ready = append(o.ready, check{name, wait.Rarely(run)})
}

// Serve serves the metrics and the health checks until ctx ends. Then it waits for running requests and closes the
// listeners. It blocks until ctx ends, even if it serves nothing.
func (o *Monitor) Serve(ctx context.Context) error {
	defer o.unlisten()
	g, ctx := errgroup.WithContext(ctx)
	if o.Metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", newScrapes(ofHub{o.Registry, o.Hub}, o.Registry, o.log))
		g.Go(func() error { return serveHTTP(ctx, o.Metrics, mux) })
	}
	if o.Health != nil {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /healthz", verdict(o.live))
		mux.HandleFunc("GET /readyz",
			verdict(append(o.ready, check{"running", func(context.Context) error { return ctx.Err() }})))
		g.Go(func() error { return serveHTTP(ctx, o.Health, mux) })
	}
	g.Go(func() error { <-ctx.Done(); return nil }) // Serve waits even without listeners
	return g.Wait()
}

// verdict returns a handler that responds with 200 if all checks succeed, and otherwise with 503 and the failures.
func verdict(checks []check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), wait.CheckLimit)
		defer cancel()
		var wrong []string
		for _, c := range checks {
			if err := c.run(ctx); err != nil {
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

// writeTimeout bounds how long the write of a response may take. Otherwise a client that does not read would hold its
// connection forever.
const writeTimeout = 10 * time.Second

// maxConnections bounds the number of connections of one listener. The listener's clients are a few Prometheus
// servers, or the kubelet.
const maxConnections = 100

// serveHTTP serves the handler until ctx ends. It then waits at most a second for running requests, which are short.
func serveHTTP(ctx context.Context, l net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: writeTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
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
	err := server.Serve(connlimit.Listen(l, maxConnections))
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	return fmt.Errorf("serve %s: %w", l.Addr(), err)
}
