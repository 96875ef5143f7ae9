// Package player acts as Cluster Autoscaler for one node group. It is for tests that must see each answer of the
// group, which CA's own loop would hide.
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

// timeout is CA's own timeout for a call.
const timeout = 5 * time.Second

// Player acts as CA for one group. In each loop it calls Refresh, reads the group, and requests as many nodes as are
// missing from the wanted number. It never repeats a call. If the answer to a call is lost, the next loop reads the
// effect of the call.
type Player struct {
	T      *testing.T // the running part of the test
	Wanted int
	Grown  []time.Duration // durations of the IncreaseSize calls that succeeded

	group  string
	client protos.CloudProviderClient
}

// New returns a Player that connects to an address that answers.
func New(t *testing.T, group string, addresses ...string) *Player {
	t.Helper()
	conn, err := ca.Dial(insecure.NewCredentials(), addresses...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return Of(t, group, protos.NewCloudProviderClient(conn))
}

// Of returns a Player for an existing connection.
func Of(t *testing.T, group string, client protos.CloudProviderClient) *Player {
	return &Player{T: t, group: group, client: client}
}

// Group returns the group for which the player acts.
func (a *Player) Group() string { return a.group }

// Picture is the state of the group as CA sees it.
type Picture struct {
	Target  int
	Listed  []string        // ids of the listed instances that are not being deleted
	Running map[string]bool // the listed instances that run
	Failed  []string
}

// Until waits until check returns nil. If the limit passes, the test fails.
func (a *Player) Until(limit time.Duration, what string, check func() error) {
	a.T.Helper()
	testkit.Until(a.T, limit, what, check)
}

// Look calls Refresh and reads the group.
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

// Loop runs one loop of CA. If the target size is higher than Wanted, the test fails, because a step was done twice.
// If Wanted is 0, Loop removes all instances instead.
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
		return a.Grow(missing)
	case missing < 0 && a.Wanted > 0:
		a.T.Fatalf("%d wanted, and the target is %d: %v", a.Wanted, seen.Target, seen.Listed)
	case missing < 0:
		return a.Remove(seen.Listed)
	}
	return nil
}

// Grow requests delta more nodes, with one call.
func (a *Player) Grow(delta int) error {
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

// Remove deletes the instances with these ids.
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
