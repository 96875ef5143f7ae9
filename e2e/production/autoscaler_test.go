package production

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// timeout is CA's own for a call.
const timeout = 5 * time.Second

// autoscaler plays CA for one group: in each loop it refreshes, reads, and asks for what is missing of its wish. It
// never repeats a call by itself: what came of one whose answer was lost it sees in the next loop.
type autoscaler struct {
	t      *testing.T
	group  string
	client protos.CloudProviderClient
	wanted int
	grown  []time.Duration // how long IncreaseSize took, when it was answered
}

// newAutoscaler connects to whichever of the addresses answers.
func newAutoscaler(t *testing.T, group string, addresses ...string) *autoscaler {
	t.Helper()
	r := manual.NewBuilderWithScheme("replicas")
	var state resolver.State
	for _, a := range addresses {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: a})
	}
	r.InitialState(state)
	conn, err := grpc.NewClient("replicas:///", grpc.WithResolvers(r),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second,
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return &autoscaler{t: t, group: group, client: protos.NewCloudProviderClient(conn)}
}

// picture is what CA sees of its group.
type picture struct {
	target  int
	listed  []string        // instance ids that count
	running map[string]bool // of these
	failed  []string
}

func (a *autoscaler) until(limit time.Duration, what string, check func() error) {
	a.t.Helper()
	testkit.Until(a.t, limit, what, check)
}

// look refreshes and reads.
func (a *autoscaler) look() (picture, error) {
	ctx, cancel := context.WithTimeout(a.t.Context(), 2*timeout)
	defer cancel()
	p := picture{running: map[string]bool{}}
	if _, err := a.client.Refresh(ctx, &protos.RefreshRequest{}); err != nil {
		return p, err
	}
	target, err := a.client.NodeGroupTargetSize(ctx, &protos.NodeGroupTargetSizeRequest{Id: a.group})
	if err != nil {
		return p, err
	}
	nodes, err := a.client.NodeGroupNodes(ctx, &protos.NodeGroupNodesRequest{Id: a.group})
	if err != nil {
		return p, err
	}
	p.target = int(target.GetTargetSize())
	for _, i := range nodes.GetInstances() {
		switch state := i.GetStatus().GetInstanceState(); {
		case state == protos.InstanceStatus_instanceDeleting:
			continue
		case i.GetStatus().GetErrorInfo().GetErrorCode() != "":
			p.failed = append(p.failed, i.GetId())
		case state == protos.InstanceStatus_instanceRunning:
			p.running[i.GetId()] = true
		}
		p.listed = append(p.listed, i.GetId())
	}
	return p, nil
}

// loop is one loop of CA. More than was wished for ends the test: something was done twice.
func (a *autoscaler) loop() error {
	seen, err := a.look()
	if err != nil {
		return err
	}
	if len(seen.failed) > 0 {
		return fmt.Errorf("failed: %v", seen.failed)
	}
	switch missing := a.wanted - seen.target; {
	case missing > 0:
		return a.grow(missing)
	case missing < 0 && a.wanted > 0:
		a.t.Fatalf("%d wanted, and the target is %d: %v", a.wanted, seen.target, seen.listed)
	case missing < 0:
		return a.remove(seen.listed)
	}
	return nil
}

func (a *autoscaler) grow(delta int) error {
	ctx, cancel := context.WithTimeout(a.t.Context(), timeout)
	defer cancel()
	began := time.Now()
	_, err := a.client.NodeGroupIncreaseSize(ctx,
		&protos.NodeGroupIncreaseSizeRequest{Id: a.group, Delta: int32(delta)})
	if err == nil {
		a.grown = append(a.grown, time.Since(began))
	}
	return err
}

func (a *autoscaler) remove(ids []string) error {
	ctx, cancel := context.WithTimeout(a.t.Context(), timeout)
	defer cancel()
	request := &protos.NodeGroupDeleteNodesRequest{Id: a.group}
	for _, id := range ids {
		request.Nodes = append(request.Nodes, &protos.ExternalGrpcNode{Name: id, ProviderID: id})
	}
	_, err := a.client.NodeGroupDeleteNodes(ctx, request)
	return err
}
