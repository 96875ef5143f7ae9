package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
	"k8s.io/utils/ptr"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// scrape returns the server's own metrics as Prometheus reads them, without comments.
func scrape(t *testing.T, m *Metrics) []string {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(m))
	families, err := reg.Gather()
	require.NoError(t, err)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
	page := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	var lines []string
	for _, line := range strings.Split(page.Body.String(), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimPrefix(line, "liqo_autoscaler_"))
		}
	}
	return lines
}

func has(t *testing.T, lines []string, want ...string) {
	t.Helper()
	for _, w := range want {
		require.Contains(t, lines, w)
	}
}

// names returns the lines with this prefix.
func names(lines []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return !strings.HasPrefix(l, prefix) })
}

func TestMetricsShowTheView(t *testing.T) {
	f := newFake()
	s, err := New(Options{Groups: f, Specs: []fleet.GroupSpec{spec("cpu", 1, 10), spec("gpu", 0, 8)},
		Limits: Limits{Nodes: ptr.To(9)}, Logger: quiet})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	require.NoError(t, c.increase("cpu", 6))
	f.change("cpu", func(l *fleet.Ledger) {
		for i, provider := range []string{"milan", "milan", "turin"} {
			l.Entries[i].Phase, l.Entries[i].Offer = fleet.Ready, &fleet.Offer{Provider: provider}
		}
		l.Entries[1].NotReady = true
		l.Entries[2].Leaving = true
		l.Entries[3].Phase, l.Entries[3].Failure = fleet.Failed, fleet.NewFailure(fleet.CodeNoCapacity, "milan", "", "full")
		l.Entries[4].Phase, l.Entries[4].Stuck, l.Entries[4].NotReady = fleet.Unpeering, "cancelled", true
		l.Paused, l.Condition = true, "this worker's build cannot continue them"
		l.Standby = []fleet.Standby{{Provider: "milan", Key: "standby/cpu/e-1", State: fleet.HoldGranted}}
	})
	require.NoError(t, c.refresh())

	lines := scrape(t, NewMetrics(s))
	has(t, lines,
		`group_min_size{group="cpu"} 1`, `group_max_size{group="cpu"} 10`, `group_offered_max_size{group="cpu"} 4`,
		`group_target_size{group="cpu"} 4`,
		`group_max_size{group="gpu"} 8`, `group_offered_max_size{group="gpu"} 5`, `group_target_size{group="gpu"} 0`,
		`instances{group="cpu",phase="Ready",state="running"} 2`, `instances{group="cpu",phase="Ready",state="deleting"} 1`,
		`instances{group="cpu",phase="Failed",state="creating"} 1`,
		`instances{group="cpu",phase="Pending",state="creating"} 1`,
		`instances{group="cpu",phase="Unpeering",state="deleting"} 1`,
		`instances{group="cpu",phase="Peering",state="creating"} 0`,
		`instances_stuck{group="cpu"} 1`, `instances_not_ready{group="cpu"} 1`, `instances_stuck{group="gpu"} 0`,
		`instances_failed{code="NoCapacity",group="cpu"} 1`, `instances_failed{code="Timeout",group="cpu"} 0`,
		`provider_instances{provider="milan"} 2`, `provider_instances{provider="turin"} 1`,
		`group_standby_peerings{group="cpu",state="granted"} 1`, `group_standby_peerings{group="gpu",state="granted"} 0`,
		`group_standby_peerings{group="cpu",state="waiting"} 0`,
		`group_paused{group="cpu"} 1`, `group_paused{group="gpu"} 0`, `group_dirty{group="cpu"} 0`,
		`group_drivers_fail{group="cpu"} 1`, `group_drivers_fail{group="gpu"} 0`,
		`group_retired{group="cpu"} 0`, `group_template_kept{group="cpu"} 0`, `view_fresh 1`, `config_broken 0`,
	)
	require.Len(t, names(lines, "instances{"), 10+9, "every phase but Released, in each group, and one that leaves")
	require.NotContains(t, strings.Join(lines, "\n"), "cpu-t0-", "no instance is a label")
}

// A metric without a known value is absent and not zero.
func TestMetricsBeforeTheFirstSnapshot(t *testing.T) {
	f := newFake()
	f.down = true
	lines := scrape(t, NewMetrics(newServer(t, f, spec("cpu", 0, 5))))
	has(t, lines, `group_max_size{group="cpu"} 5`, `view_fresh 0`)
	require.Empty(t, names(lines, "group_target_size"))
	require.Empty(t, names(lines, "snapshot_age_seconds"))
	require.Empty(t, names(lines, "instances"))
}

// The metric for the age grows while a group cannot be read. It does not grow while the group is only idle.
func TestSnapshotAgeGrowsOnlyWhileUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := loaded(t, f, specs("cpu", "gpu")...)
		m := NewMetrics(s)
		refresh := func() error {
			_, err := s.Refresh(context.Background(), &protos.RefreshRequest{})
			return err
		}
		pass(30 * time.Second)
		has(t, scrape(t, m), `snapshot_age_seconds{group="cpu"} 30`)
		require.NoError(t, refresh())
		has(t, scrape(t, m), `snapshot_age_seconds{group="cpu"} 0`)
		f.set(func(f *fakeGroups) { f.failing["cpu"] = errors.New("down") })
		pass(61 * time.Second)
		require.NoError(t, refresh())
		has(t, scrape(t, m), `snapshot_age_seconds{group="cpu"} 61`, `snapshot_age_seconds{group="gpu"} 0`, `view_fresh 1`)
	})
}

func TestMetricsShowAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := loaded(t, f, specs("cpu")...)
		f.set(func(f *fakeGroups) { f.lose = lose{active: true} })
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, err := s.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: "cpu", Delta: 1})
		require.Error(t, err)
		has(t, scrape(t, NewMetrics(s)), `group_dirty{group="cpu"} 1`)
	})
}

func TestMetricsShowTheConfig(t *testing.T) {
	c, s, config := reloading(t, newFake(), specs("cpu", "gpu")...)
	m := NewMetrics(s)
	require.NoError(t, c.increase("cpu", 1))

	since := func() time.Time { return s.config.Load().since }
	at := func() string {
		return fmt.Sprintf("config_in_force_timestamp_seconds %v", float64(since().UnixNano())/1e9)
	}
	began := since()
	has(t, scrape(t, m), at())
	config.set(Settings{}, errors.New("no such file"))
	require.NoError(t, c.refresh())
	has(t, scrape(t, m), `config_broken 1`)
	config.write("v2", specs("gpu")...)
	require.NoError(t, c.refresh())
	has(t, scrape(t, m), `config_broken 0`, `group_retired{group="cpu"} 1`, `group_min_size{group="cpu"} 0`,
		`group_retired{group="gpu"} 0`, at())
	require.True(t, since().After(began))
}

// A max-node-provision-time that is too short for a group sets the metric for this group.
func TestMetricsShowAShortProvisionTime(t *testing.T) {
	s := loaded(t, newFake(), specs("cpu", "gpu")...)
	_, err := s.NodeGroupGetOptions(t.Context(), &protos.NodeGroupAutoscalingOptionsRequest{Id: "cpu",
		Defaults: &protos.NodeGroupAutoscalingOptions{MaxNodeProvisionTime: &metav1.Duration{Duration: time.Minute}}})
	requireCode(t, codes.Unimplemented, err)
	has(t, scrape(t, NewMetrics(s)), `group_provision_time_short{group="cpu"} 1`,
		`group_provision_time_short{group="gpu"} 0`)
}

// A group whose workflow does not accept its config keeps the previous config, and the metrics show this. The other
// groups are not affected.
func TestMetricsShowAnUnavailableGroup(t *testing.T) {
	f := newFake()
	s := loaded(t, f, specs("cpu", "gpu")...)
	m := NewMetrics(s)
	has(t, scrape(t, m), `group_unavailable{group="cpu"} 0`, `group_unavailable{group="gpu"} 0`)
	f.set(func(f *fakeGroups) { f.failing["cpu"] = errors.New("its workflow task fails") })
	require.NoError(t, direct{t, s}.refresh())
	has(t, scrape(t, m), `group_unavailable{group="cpu"} 1`, `group_unavailable{group="gpu"} 0`)
	f.set(func(f *fakeGroups) { delete(f.failing, "cpu") })
	require.NoError(t, direct{t, s}.refresh())
	has(t, scrape(t, m), `group_unavailable{group="cpu"} 0`)
}

// A scrape must not wait while the server reads a config or calls Temporal.
func TestScrapeDoesNotWait(t *testing.T) {
	s := loaded(t, newFake(), specs("cpu")...)
	s.reloading.Lock()
	defer s.reloading.Unlock()
	for _, g := range s.roster.Load().list {
		require.True(t, g.turn.TryAcquire(1))
		defer g.turn.Release(1)
	}
	has(t, scrape(t, NewMetrics(s)), `group_target_size{group="cpu"} 0`)
}

func TestRPCsAreMeasured(t *testing.T) {
	s := loaded(t, newFake(), specs("cpu")...)
	m := NewMetrics(s)
	conn := dial(t, s, ServeOptions{Interceptors: []grpc.UnaryServerInterceptor{m.Interceptor()}})
	c := client{t: t, CloudProviderClient: protos.NewCloudProviderClient(conn)}
	require.NoError(t, c.increase("cpu", 1))
	require.Error(t, c.increase("cpu", 1000))
	c.target("cpu")
	_, err := healthpb.NewHealthClient(conn).Check(c.ctx(), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)

	lines := scrape(t, m)
	has(t, lines,
		`grpc_request_duration_seconds_count{code="OK",method="NodeGroupIncreaseSize"} 1`,
		`grpc_request_duration_seconds_count{code="OutOfRange",method="NodeGroupIncreaseSize"} 1`,
		`grpc_request_duration_seconds_count{code="OK",method="NodeGroupTargetSize"} 1`,
		`grpc_request_duration_seconds_bucket{code="OK",method="NodeGroupTargetSize",le="1"} 1`,
		`grpc_request_duration_seconds_bucket{code="OK",method="NodeGroupTargetSize",le="5"} 1`,
		`grpc_request_duration_seconds_bucket{code="OK",method="NodeGroupTargetSize",le="10"} 1`,
	)
	require.NotContains(t, strings.Join(lines, "\n"), `method="Check"`)
}

// Alive depends on the server's loop and not on Temporal.
func TestAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.down = true
		s := newServer(t, f, spec("cpu", 0, 5))
		require.ErrorContains(t, s.Alive(), "has not started")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.KeepWarm(ctx, nil); close(done) }()
		pass(time.Hour)
		require.NoError(t, s.Alive(), "Temporal is down, and that is all")
		cancel()
		<-done
		pass(aliveFor + time.Second)
		require.ErrorContains(t, s.Alive(), "hung")
	})
}
