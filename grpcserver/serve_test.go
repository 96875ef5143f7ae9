package grpcserver

import (
	"context"
	"log/slog"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func TestHealthFollowsTheView(t *testing.T) {
	f := newFake()
	f.down = true
	conn := dial(t, newServer(t, f, spec("cpu", 0, 5)), ServeOptions{})
	check := func(service string) healthpb.HealthCheckResponse_ServingStatus {
		resp, err := healthpb.NewHealthClient(conn).Check(context.Background(),
			&healthpb.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		return resp.GetStatus()
	}
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, check(""))
	f.set(func(f *fakeGroups) { f.down = false })
	require.Eventually(t, func() bool { return check("") == healthpb.HealthCheckResponse_SERVING }, 2*time.Minute,
		20*time.Millisecond)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING,
		check("clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"))
}

func TestPanicFailsOnlyItsCall(t *testing.T) {
	f := newFake()
	logs := &testkit.Buffer{}
	s, err := New(Options{Groups: f, Specs: specs("cpu"), Logger: slog.New(slog.NewTextHandler(logs, nil))})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	f.set(func(f *fakeGroups) { f.onGrow = func() { panic("a defect") } })
	c := newClient(t, s)
	err = c.increase("cpu", 1)
	requireCode(t, codes.Internal, err)
	require.NotContains(t, err.Error(), "a defect")
	require.Contains(t, logs.String(), "a defect")
	require.Contains(t, logs.String(), "mutations.go", "with its stack")

	f.set(func(f *fakeGroups) { f.onGrow = nil })
	require.NoError(t, c.increase("cpu", 1), "the group is not blocked")
}

func TestMutationsAreLogged(t *testing.T) {
	logs := &testkit.Buffer{}
	s, err := New(Options{Groups: newFake(), Specs: specs("cpu"), Logger: slog.New(slog.NewTextHandler(logs, nil))})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	require.NoError(t, c.increase("cpu", 2))
	require.Error(t, c.increase("cpu", 1000))
	c.target("cpu")
	require.NoError(t, c.remove("cpu", "liqo://cpu/cpu-t0-1"))
	_, err = c.NodeGroupGetOptions(c.ctx(), &protos.NodeGroupAutoscalingOptionsRequest{Id: "cpu"})
	require.Error(t, err)

	require.Regexp(t, `level=INFO msg=rpc rpc=NodeGroupIncreaseSize group=cpu delta=2 duration=\S+ code=OK`, logs.String())
	require.Regexp(t, `level=WARN msg=rpc rpc=NodeGroupIncreaseSize group=cpu delta=1000 .*code=OutOfRange error="increase node group cpu: group cpu: target size 2 \+ 1000 is over max 5"`, logs.String())
	require.Regexp(t, `level=INFO msg=rpc rpc=NodeGroupDeleteNodes group=cpu instances=\[liqo://cpu/cpu-t0-1\]`,
		logs.String())
	require.NotContains(t, logs.String(), "TargetSize", "reads are for debugging")
	require.NotContains(t, logs.String(), "GetOptions")
}

// When its context ends, the server lets a running RPC finish, for a limited time.
func TestRunningCallCompletesAfterAStop(t *testing.T) {
	for name, tc := range map[string]struct {
		grace time.Duration
		hang  time.Duration
		want  codes.Code
	}{
		"waits": {grace: time.Minute, hang: 200 * time.Millisecond, want: codes.OK},
		"bound": {grace: 50 * time.Millisecond, hang: time.Minute, want: codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			s := loaded(t, f, spec("cpu", 0, 5))
			began := make(chan struct{})
			f.onGrow = func() { close(began) }
			f.delay = tc.hang

			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() { served <- Serve(ctx, listener, s, ServeOptions{StopGrace: tc.grace}) }()
			conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			require.NoError(t, err)
			defer conn.Close()
			answered := make(chan error, 1)
			c := client{t: t, CloudProviderClient: protos.NewCloudProviderClient(conn)}
			go func() { answered <- c.increase("cpu", 1) }()
			<-began
			cancel()
			requireCode(t, tc.want, <-answered)
			require.NoError(t, <-served)
		})
	}
}

// After its context ends, the server continues to serve for a moment: the Service's endpoints change a little later,
// and until then CA may still call.
func TestServerServesAfterItsStopUntilEndpointsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := loaded(t, newFake(), specs("cpu")...)
		listener := bufconn.Listen(1 << 20)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- Serve(ctx, listener, s, ServeOptions{LameDuck: time.Minute}) }()
		conn := dialTo(t, listener)
		c, health := client{t: t, CloudProviderClient: protos.NewCloudProviderClient(conn)}, healthpb.NewHealthClient(conn)
		require.NoError(t, c.increase("cpu", 1))
		began := time.Now()
		cancel()
		synctest.Wait()
		resp, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, resp.GetStatus())
		pass(59 * time.Second)
		require.NoError(t, c.increase("cpu", 1), "not ready, and still answering")
		require.NoError(t, conn.Close())
		require.NoError(t, <-served)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

// hesitant yields to other goroutines when its address is read. Serve reads the address just before it serves.
type hesitant struct{ net.Listener }

func (h hesitant) Addr() net.Addr {
	for range 10_000 {
		runtime.Gosched()
	}
	return h.Listener.Addr()
}

// A server whose context ends before it serves returns no error.
func TestServeEndedBeforeItsStartIsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, Serve(ctx, hesitant{listener}, newServer(t, newFake(), spec("cpu", 0, 5)), ServeOptions{}))
	}
}

// An error of the listener ends the server.
func TestServeEndsWithItsListener(t *testing.T) {
	listener := bufconn.Listen(1)
	require.NoError(t, listener.Close())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), listener, newServer(t, newFake(), spec("cpu", 0, 5)), ServeOptions{})
	}()
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "serve grpc")
	case <-time.After(20 * time.Second):
		require.Fail(t, "it continues")
	}
}

// counting counts the RPCs.
type counting struct {
	stats.Handler
	begun atomic.Int64
}

func (c *counting) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (c *counting) HandleRPC(_ context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.Begin); ok {
		c.begun.Add(1)
	}
}

func (c *counting) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (c *counting) HandleConn(context.Context, stats.ConnStats) {}

// An interceptor for traces receives every RPC.
func TestInterceptorsReceiveEveryRPC(t *testing.T) {
	calls := &counting{}
	conn := dial(t, loaded(t, newFake(), specs("cpu")...), ServeOptions{Calls: calls})
	c := client{t: t, CloudProviderClient: protos.NewCloudProviderClient(conn)}
	require.NoError(t, c.refresh())
	require.Zero(t, c.target("cpu"))
	require.EqualValues(t, 2, calls.begun.Load())
}
