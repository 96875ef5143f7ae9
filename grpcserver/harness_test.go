package grpcserver

import (
	"context"
	"log/slog"
	"net"
	"path"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func spec(id string, minSize, maxSize int) fleet.GroupSpec {
	return fleet.GroupSpec{Min: minSize, Max: maxSize, InstanceSpec: fleet.InstanceSpec{ID: id,
		Budgets: fleet.Budgets{}.WithDefaults(),
		Shape: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
		}}}
}

var quiet = slog.New(slog.DiscardHandler)

func newServer(t testing.TB, f *fakeGroups, specs ...fleet.GroupSpec) *Server {
	t.Helper()
	s, err := New(Options{Groups: f, Specs: specs, Logger: quiet})
	require.NoError(t, err)
	return s
}

// loaded returns a server that has read its groups, for direct calls.
func loaded(t testing.TB, f *fakeGroups, specs ...fleet.GroupSpec) *Server {
	t.Helper()
	s := newServer(t, f, specs...)
	require.NoError(t, s.Start(t.Context()))
	return s
}

// dial serves s over an in-memory connection until the test ends. It connects to s as CA does.
func dial(t testing.TB, s *Server, o ServeOptions) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, s, o) }()
	conn := dialTo(t, listener)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		cancel()
		require.NoError(t, <-done)
	})
	return conn
}

// dialTo connects to a server that listens in memory.
func dialTo(t testing.TB, listener *bufconn.Listener) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	return conn
}

// client calls the server as CA does: over the wire with a deadline, or directly.
type client struct {
	t testing.TB
	protos.CloudProviderClient
	direct bool
}

func newClient(t testing.TB, s *Server) client {
	return client{t: t, CloudProviderClient: protos.NewCloudProviderClient(dial(t, s, ServeOptions{}))}
}

// newDirect returns a client that calls s in this process. It does not encode messages, which saves time in tests
// with thousands of random cases.
func newDirect(t testing.TB, s *Server) client {
	return client{t: t, CloudProviderClient: protos.NewCloudProviderClient(inProcess{s}), direct: true}
}

// inProcess is the connection of newDirect.
type inProcess struct{ *Server }

func (c inProcess) Invoke(ctx context.Context, method string, request, response any, _ ...grpc.CallOption) error {
	set := func(to, from any) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }
	for _, m := range protos.CloudProvider_ServiceDesc.Methods {
		if path.Base(method) != m.MethodName {
			continue
		}
		answer, err := m.Handler(c.Server, ctx, func(in any) error { set(in, request); return nil }, nil)
		if err == nil {
			set(response, answer)
		}
		return err
	}
	return status.Error(codes.Unimplemented, method)
}

func (inProcess) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no stream")
}

func (c client) ctx() context.Context {
	if c.direct {
		return context.Background()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // this limit only ends calls that hang
	c.t.Cleanup(cancel)
	return ctx
}

func (c client) increase(group string, delta int32) error {
	_, err := c.NodeGroupIncreaseSize(c.ctx(), &protos.NodeGroupIncreaseSizeRequest{Id: group, Delta: delta})
	return err
}

func (c client) decrease(group string, delta int32) error {
	_, err := c.NodeGroupDecreaseTargetSize(c.ctx(), &protos.NodeGroupDecreaseTargetSizeRequest{Id: group, Delta: delta})
	return err
}

func (c client) remove(group string, ids ...string) error {
	req := &protos.NodeGroupDeleteNodesRequest{Id: group}
	for _, id := range ids {
		req.Nodes = append(req.Nodes, &protos.ExternalGrpcNode{Name: id, ProviderID: id})
	}
	_, err := c.NodeGroupDeleteNodes(c.ctx(), req)
	return err
}

func (c client) refresh() error {
	_, err := c.Refresh(c.ctx(), &protos.RefreshRequest{})
	return err
}

func (c client) target(group string) int {
	c.t.Helper()
	resp, err := c.NodeGroupTargetSize(c.ctx(), &protos.NodeGroupTargetSizeRequest{Id: group})
	require.NoError(c.t, err)
	return int(resp.GetTargetSize())
}

func (c client) nodes(group string) []*protos.Instance {
	c.t.Helper()
	resp, err := c.NodeGroupNodes(c.ctx(), &protos.NodeGroupNodesRequest{Id: group})
	require.NoError(c.t, err)
	return resp.GetInstances()
}

func (c client) ids(group string) []string {
	c.t.Helper()
	var ids []string
	for _, i := range c.nodes(group) {
		ids = append(ids, i.GetId())
	}
	return ids
}

func (c client) groupOf(node *protos.ExternalGrpcNode) *protos.NodeGroup {
	c.t.Helper()
	resp, err := c.NodeGroupForNode(c.ctx(), &protos.NodeGroupForNodeRequest{Node: node})
	require.NoError(c.t, err)
	return resp.GetNodeGroup()
}

func requireCode(t testing.TB, want codes.Code, err error) {
	t.Helper()
	require.Equal(t, want, status.Code(err), "%v", err)
}

const (
	creating = protos.InstanceStatus_instanceCreating
	running  = protos.InstanceStatus_instanceRunning
	deleting = protos.InstanceStatus_instanceDeleting
)

func specs(ids ...string) []fleet.GroupSpec {
	var out []fleet.GroupSpec
	for _, id := range ids {
		out = append(out, spec(id, 0, 5))
	}
	return out
}

// pass lets time pass. Tests call pass only in synctest bubbles, where it takes no real time.
func pass(d time.Duration) { time.Sleep(d) }
