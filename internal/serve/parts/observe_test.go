package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/serve"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

var quiet = slog.New(slog.DiscardHandler)

// served serves a Monitor until the test ends or stop is called.
func served(t *testing.T, prepare func(*Monitor)) (o *Monitor, stop func()) {
	t.Helper()
	o, err := Open(serve.ObserveFlags{Metrics: "127.0.0.1:0", Health: "127.0.0.1:0"}, quiet)
	require.NoError(t, err)
	prepare(o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Serve(ctx) }()
	var stopped atomic.Bool
	stop = func() {
		if cancel(); stopped.CompareAndSwap(false, true) {
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return o, stop
}

func get(t *testing.T, listener net.Listener, path string) (int, string) {
	t.Helper()
	resp, err := http.Get("http://" + listener.Addr().String() + path)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// fakeTemporal answers health checks in the way that a test sets, and records the deadlines of the checks.
type fakeTemporal struct {
	down  atomic.Pointer[error]
	given atomic.Int64
}

func (f *fakeTemporal) CheckHealth(ctx context.Context, _ *client.CheckHealthRequest) (*client.CheckHealthResponse,
	error) {
	if deadline, ok := ctx.Deadline(); ok {
		f.given.Store(int64(time.Until(deadline)))
	}
	err := f.down.Load()
	switch {
	case err == nil:
		return &client.CheckHealthResponse{}, nil
	case *err == nil: // the check hangs
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		return nil, *err
	}
}

func TestWorkerIsReadyWhilePollingAndTemporalAnswers(t *testing.T) {
	var temporal fakeTemporal
	var polls func()
	var waits func(error)
	o, stop := served(t, func(o *Monitor) { polls, waits = o.ObserveWorker(&temporal) })
	is := func(status int, text string) {
		t.Helper()
		testkit.Until(t, time.Minute, "it is seen within a second", func() error {
			if code, body := get(t, o.Health, "/readyz"); code != status || body != text {
				return fmt.Errorf("%d: %s", code, body)
			}
			return nil
		})
	}
	is(503, "worker: not started yet\n")
	waits(errors.New("search attributes are not registered: LiqoGroup"))
	is(503, "worker: search attributes are not registered: LiqoGroup\n")
	polls()
	is(200, "ok\n")

	refused := errors.New("connection refused")
	temporal.down.Store(&refused)
	is(503, "Temporal: connection refused\n")
	code, _ := get(t, o.Health, "/healthz")
	require.Equal(t, 200, code, "a restart does not bring Temporal back")

	var hangs error
	temporal.down.Store(&hangs)
	is(503, "Temporal: context deadline exceeded\n")
	require.Less(t, time.Duration(temporal.given.Load()), time.Second, "the kubelet gives up then")

	temporal.down.Store(nil)
	is(200, "ok\n")

	stop()
	_, err := net.DialTimeout("tcp", o.Health.Addr().String(), time.Second)
	require.Error(t, err)
}

// groups contains node groups that can be read while down is false.
type groups struct{ down atomic.Bool }

func (g *groups) Snapshot(_ context.Context, group string) (fleet.Snapshot, error) {
	if g.down.Load() {
		return fleet.Snapshot{}, fmt.Errorf("%w: %w", fleet.ErrTemporal, fleet.ErrUnavailable)
	}
	return fleet.Snapshot{Group: group, Epoch: "t0", Revision: 1, Target: 3, Instances: []fleet.InstanceView{
		{Name: group + "-t0-1", Phase: fleet.Ready, State: fleet.StateRunning, Counts: true, Provider: "milan"},
	}, Cost: money.Cost{Currency: "USD", Providers: map[string]money.ProviderCost{"milan": {Nodes: 1}}}}, nil
}

func (g *groups) change(ctx context.Context, group string) (fleet.Position, error) {
	s, err := g.Snapshot(ctx, group)
	return s.Position(), err
}

func (g *groups) Configure(ctx context.Context, spec fleet.GroupSpec, _ fleet.GroupNotice,
	_ fleet.Position) (fleet.Position, error) {
	return g.change(ctx, spec.ID)
}

func (g *groups) Grow(ctx context.Context, group string, _ int, _ float64, _ fleet.Position) (fleet.Position, error) {
	return g.change(ctx, group)
}

func (g *groups) Shrink(ctx context.Context, group string, _ int, _ fleet.Position) (fleet.Position, error) {
	return g.change(ctx, group)
}

func (g *groups) NewCall(_ context.Context, names []string) fleet.Call {
	return fleet.Call{Names: names}
}

func (g *groups) ReleaseEach(ctx context.Context, group string, _ []fleet.Call,
	_ fleet.Position) (at fleet.Position, refused map[int]fleet.Refusal, err error) {
	at, err = g.change(ctx, group)
	return at, nil, err
}

func (g *groups) Running(context.Context) ([]string, error) { return nil, nil }

func (g *groups) Close(context.Context, string) error { return nil }

func TestServerIsReadyWithAFreshView(t *testing.T) {
	var fleetDown groups
	fleetDown.down.Store(true)
	s, err := grpcserver.New(grpcserver.Options{Groups: &fleetDown,
		Specs:  []fleet.GroupSpec{{InstanceSpec: fleet.InstanceSpec{ID: "cpu"}, Max: 4}},
		Logger: quiet})
	require.NoError(t, err)
	var options grpcserver.ServeOptions
	o, _ := served(t, func(o *Monitor) { o.ObserveServer(s, &options) })
	require.Len(t, options.Interceptors, 1)

	code, body := get(t, o.Health, "/healthz")
	require.Equal(t, 503, code)
	require.Contains(t, body, "refresh: the loop that reads the node groups has not started")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tried := make(chan struct{}, 100)
	go s.KeepWarm(ctx, func() { tried <- struct{}{} })
	<-tried
	code, _ = get(t, o.Health, "/healthz")
	require.Equal(t, 200, code)
	code, body = get(t, o.Health, "/readyz")
	require.Equal(t, 503, code)
	require.Contains(t, body, "node groups: ")

	fleetDown.down.Store(false)
	require.Eventually(t, func() bool { code, _ := get(t, o.Health, "/readyz"); return code == 200 }, 30*time.Second,
		10*time.Millisecond)
	_, page := get(t, o.Metrics, "/metrics")
	require.Contains(t, page, `liqo_autoscaler_group_target_size{group="cpu"} 3`)
}

func TestDiscoveryIsReadyWhileItsStoreAnswers(t *testing.T) {
	served := func(keep store.Store) *Monitor {
		api, err := server.New(server.Options{Store: keep, Writers: server.Writers{}})
		require.NoError(t, err)
		o, _ := served(t, func(o *Monitor) { o.ReadyWhen("offers", api.Ready) })
		return o
	}
	o := served(storetest.New(t))
	code, _ := get(t, o.Health, "/readyz")
	require.Equal(t, 200, code)
	o = served(closedStore{})
	code, body := get(t, o.Health, "/readyz")
	require.Equal(t, 503, code)
	require.Equal(t, "offers: database is closed\n", body)
}

type closedStore struct{ store.Store }

func (closedStore) Now(context.Context) (time.Time, error) {
	return time.Time{}, errors.New("database is closed")
}

// The metrics of a process that has all parts pass Prometheus' own lint. This does not include the SDK's metrics,
// because they have no help text.
func TestMetricsPassTheLint(t *testing.T) {
	s, err := grpcserver.New(grpcserver.Options{Groups: &groups{},
		Specs:  []fleet.GroupSpec{{InstanceSpec: fleet.InstanceSpec{ID: "cpu"}, Max: 4}},
		Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	o, _ := served(t, func(o *Monitor) {
		var options grpcserver.ServeOptions
		o.Hub = "east"
		o.ObserveServer(s, &options)
		o.ObserveCertificate("missing.pem")
		measured, err := o.measured(true)
		require.NoError(t, err)
		var options2 client.Options
		measured(&options2)
		require.NotNil(t, options2.MetricsHandler)
		require.Len(t, options2.Interceptors, 2)
		options2.MetricsHandler.Counter("temporal_worker_start").Inc(1)
	})
	families, err := o.Registry.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	for _, p := range problems {
		require.True(t, strings.HasPrefix(p.Metric, "temporal_") && p.Text == "no help text", "%s: %s", p.Metric, p.Text)
	}
	code, page := get(t, o.Metrics, "/metrics")
	require.Equal(t, 200, code)
	for _, line := range []string{
		`liqo_autoscaler_view_fresh{hub="east"} 1`, `temporal_worker_start_total{hub="east"} 1`,
		`liqo_autoscaler_tls_certificate_expiry_timestamp_seconds{hub="east"} 0`,
		`liqo_autoscaler_build_info{go_version=`, `go_goroutines{hub="east"} `, `process_cpu_seconds_total{hub="east"} `,
	} {
		require.Contains(t, page, "\n"+line)
	}
}
