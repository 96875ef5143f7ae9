// Package player plays Cluster Autoscaler for one group, where its own loop would hide what the group answers.
package player

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// timeout is CA's own for a call.
const timeout = 5 * time.Second

// Player plays CA for one group: in each loop it refreshes, reads, and asks for what is missing of its wish. It never
// repeats a call by itself: what came of one whose answer was lost it sees in the next loop.
type Player struct {
	T      *testing.T // of the part of the test that plays now
	Wanted int
	Grown  []time.Duration // how long IncreaseSize took, when it was answered

	group  string
	client protos.CloudProviderClient
}

// New connects to whichever of the addresses answers.
func New(t *testing.T, group string, addresses ...string) *Player {
	t.Helper()
	conn, err := ca.Dial(insecure.NewCredentials(), addresses...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return Of(t, group, protos.NewCloudProviderClient(conn))
}

// Of plays over a connection that is there.
func Of(t *testing.T, group string, client protos.CloudProviderClient) *Player {
	return &Player{T: t, group: group, client: client}
}

// Group is the one that is played for.
func (a *Player) Group() string { return a.group }

// Picture is what CA sees of its group.
type Picture struct {
	Target  int
	Listed  []string        // instance ids that count
	Running map[string]bool // of these
	Failed  []string
}

// Until waits for a condition.
func (a *Player) Until(limit time.Duration, what string, check func() error) {
	a.T.Helper()
	testkit.Until(a.T, limit, what, check)
}

// Look refreshes and reads.
func (a *Player) Look() (Picture, error) {
	ctx, cancel := context.WithTimeout(a.T.Context(), 2*timeout)
	defer cancel()
	p := Picture{Running: map[string]bool{}}
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
	p.Target = int(target.GetTargetSize())
	for _, i := range nodes.GetInstances() {
		switch state := i.GetStatus().GetInstanceState(); {
		case state == protos.InstanceStatus_instanceDeleting:
			continue
		case i.GetStatus().GetErrorInfo().GetErrorCode() != "":
			p.Failed = append(p.Failed, i.GetId())
		case state == protos.InstanceStatus_instanceRunning:
			p.Running[i.GetId()] = true
		}
		p.Listed = append(p.Listed, i.GetId())
	}
	return p, nil
}

// Loop is one loop of CA. More than was wished for ends the test: something was done twice.
func (a *Player) Loop() error {
	seen, err := a.Look()
	if err != nil {
		return err
	}
	if len(seen.Failed) > 0 {
		return fmt.Errorf("failed: %v", seen.Failed)
	}
	switch missing := a.Wanted - seen.Target; {
	case missing > 0:
		return a.grow(missing)
	case missing < 0 && a.Wanted > 0:
		a.T.Fatalf("%d wanted, and the target is %d: %v", a.Wanted, seen.Target, seen.Listed)
	case missing < 0:
		return a.Remove(seen.Listed)
	}
	return nil
}

func (a *Player) grow(delta int) error {
	ctx, cancel := context.WithTimeout(a.T.Context(), timeout)
	defer cancel()
	began := time.Now()
	_, err := a.client.NodeGroupIncreaseSize(ctx,
		&protos.NodeGroupIncreaseSizeRequest{Id: a.group, Delta: int32(delta)})
	if err == nil {
		a.Grown = append(a.Grown, time.Since(began))
	}
	return err
}

// Remove deletes instances, by their ids.
func (a *Player) Remove(ids []string) error {
	ctx, cancel := context.WithTimeout(a.T.Context(), timeout)
	defer cancel()
	request := &protos.NodeGroupDeleteNodesRequest{Id: a.group}
	for _, id := range ids {
		request.Nodes = append(request.Nodes, &protos.ExternalGrpcNode{Name: id, ProviderID: id})
	}
	_, err := a.client.NodeGroupDeleteNodes(ctx, request)
	return err
}
