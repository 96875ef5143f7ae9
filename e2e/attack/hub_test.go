package attack

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/devserver"
)

const groupsText = `
nodeGroups:
- id: std
  max: 60
  shape: {cpu: "2", memory: 4Gi, pods: "110"}
  budgets: {peer: 60s, join: 60s, total: 8m, drain: 5s}
`

// hub holds one server and one worker, on a simulated world with one provider.
type hub struct {
	*stack
	server, worker *member
	address        string // of the server
}

// newHub starts a hub. The parameter worker contains further arguments of the worker.
func newHub(s *stack, worker ...string) *hub {
	t := s.t
	t.Helper()
	h := &hub{stack: s}
	temporal := []string{"--temporal-address", devserver.New(t, "LiqoGroup", "LiqoInstance", "LiqoProvider")}
	brief := 100 * time.Millisecond
	world := simworld.New(t, h.dir, sim.Delays{Peer: brief, Join: brief, Leave: brief, Unpeer: brief, Register: brief},
		simworld.Provider{Name: "milan",
			Offer: "lendable: {cpu: 60, memory: 120Gi, pods: 3300}, price: 1, lingerSeconds: 60"})
	require.NoError(t, os.WriteFile(h.in("groups.yaml"), []byte(groupsText), 0o600))
	common := append(temporal, "--market-file", h.in("market.json"))
	h.worker = h.start(append(append([]string{"worker", "--backend", "sim", "--world", world.Path(), "--offers",
		world.Offers()}, common...), worker...)...)
	h.address = testkit.FreePorts(t, 1)[0]
	h.server = h.start(append([]string{"grpcserver", "--config", h.in("groups.yaml"), "--listen", h.address,
		"--tls-cert", h.in("tls.crt"), "--tls-key", h.in("tls.key"), "--tls-client-ca", h.in("ca.crt"),
		"--grpc-expander"}, common...)...)
	testkit.Until(t, time.Minute, "the group is served", func() error {
		conn := h.dial("127.0.0.1", true)
		defer conn.Close()
		_, err := protos.NewCloudProviderClient(conn).Refresh(t.Context(), &protos.RefreshRequest{})
		return err
	})
	return h
}

// dial connects to the server from an address of this machine, with CA's certificate or without one.
func (h *hub) dial(ip string, known bool) *grpc.ClientConn {
	h.t.Helper()
	config := &tls.Config{RootCAs: h.by.Pool(), ServerName: "localhost"}
	if known {
		config.Certificates = append(config.Certificates, h.by.Issue(h.t).TLS())
	}
	conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return from(ip).DialContext(ctx, "tcp", address)
		}))
	require.NoError(h.t, err)
	return conn
}

// kept returns a connection that stays open until the test ends.
func (h *hub) kept(ip string, known bool) *grpc.ClientConn {
	h.t.Helper()
	conn := h.dial(ip, known)
	h.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// calls returns two kinds of calls: the calls of each loop of CA on a connection that CA keeps, and a call on a new
// connection.
func (h *hub) calls() []honest {
	ca := protos.NewCloudProviderClient(h.kept("127.0.0.1", true))
	return []honest{
		{"loop", func(ctx context.Context) error {
			if _, err := ca.Refresh(ctx, &protos.RefreshRequest{}); err != nil {
				return err
			}
			_, err := ca.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: "std"})
			return err
		}, patience},
		{"new-connection", func(ctx context.Context) error {
			conn := h.dial("127.0.0.1", true)
			defer conn.Close()
			_, err := protos.NewCloudProviderClient(conn).NodeGroups(ctx, &protos.NodeGroupsRequest{})
			return err
		}, patience},
	}
}

// node makes CA create a node and then release it.
func (h *hub) node() honest {
	ca := protos.NewCloudProviderClient(h.kept("127.0.0.1", true))
	running := func(ctx context.Context, want int) func(context.Context) error {
		return func(context.Context) error {
			if _, err := ca.Refresh(ctx, &protos.RefreshRequest{}); err != nil {
				return err
			}
			nodes, err := ca.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: "std"})
			if err != nil {
				return err
			}
			n := 0
			for _, i := range nodes.GetInstances() {
				if i.GetStatus().GetInstanceState() == protos.InstanceStatus_instanceRunning {
					n++
				}
			}
			if n != want || len(nodes.GetInstances()) != want {
				return fmt.Errorf("%d nodes wanted: %v", want, nodes.GetInstances())
			}
			return nil
		}
	}
	return honest{"node", func(ctx context.Context) error {
		_, err := ca.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: "std", Delta: 1})
		if err != nil {
			return err
		}
		if err := testkit.Poll(ctx, time.Minute, 100*time.Millisecond, running(ctx, 1)); err != nil {
			return err
		}
		nodes, err := ca.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: "std"})
		if err != nil {
			return err
		}
		_, err = ca.NodeGroupDeleteNodes(ctx, &protos.NodeGroupDeleteNodesRequest{Id: "std",
			Nodes: []*protos.ExternalGrpcNode{{ProviderID: nodes.GetInstances()[0].GetId()}}})
		if err != nil {
			return err
		}
		return testkit.Poll(ctx, time.Minute, 100*time.Millisecond, running(ctx, 0))
	}, time.Minute}
}

// observed returns the requests that a kubelet and Prometheus send.
func (m *member) observed() []honest {
	return []honest{{m.name + "-readyz", answers(m.health), patience}, {m.name + "-metrics", answers(m.metrics), patience}}
}
