package conformance

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// errUnlisted means that NodeGroups does not list the requested group.
var errUnlisted = errors.New("NodeGroups does not list it")

// call makes one call, which takes at most Options.Timeout. It adds the name of the call to an error.
func call[Q, R any](ctx context.Context, p *provider, name string,
	do func(context.Context, Q, ...grpc.CallOption) (R, error), req Q) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	resp, err := do(ctx, req)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return resp, err
}

func (p *provider) refresh(ctx context.Context) error {
	_, err := call(ctx, p, "Refresh", p.client.Refresh, &protos.RefreshRequest{})
	return err
}

func (p *provider) groups(ctx context.Context) ([]*protos.NodeGroup, error) {
	resp, err := call(ctx, p, "NodeGroups", p.client.NodeGroups, &protos.NodeGroupsRequest{})
	return resp.GetNodeGroups(), err
}

func (p *provider) group(ctx context.Context, id string) (*protos.NodeGroup, error) {
	list, err := p.groups(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range list {
		if g.GetId() == id {
			return g, nil
		}
	}
	return nil, fmt.Errorf("node group %s: %w", id, errUnlisted)
}

func (p *provider) groupOf(ctx context.Context, node *protos.ExternalGrpcNode) (*protos.NodeGroup, error) {
	resp, err := call(ctx, p, "NodeGroupForNode", p.client.NodeGroupForNode, &protos.NodeGroupForNodeRequest{Node: node})
	return resp.GetNodeGroup(), err
}

func (p *provider) target(ctx context.Context, group string) (int, error) {
	resp, err := call(ctx, p, "NodeGroupTargetSize", p.client.NodeGroupTargetSize,
		&protos.NodeGroupTargetSizeRequest{Id: group})
	return int(resp.GetTargetSize()), err
}

func (p *provider) nodes(ctx context.Context, group string) ([]*protos.Instance, error) {
	resp, err := call(ctx, p, "NodeGroupNodes", p.client.NodeGroupNodes, &protos.NodeGroupNodesRequest{Id: group})
	return resp.GetInstances(), err
}

func (p *provider) increase(ctx context.Context, group string, delta int) error {
	_, err := call(ctx, p, fmt.Sprintf("IncreaseSize(%d)", delta), p.client.NodeGroupIncreaseSize,
		&protos.NodeGroupIncreaseSizeRequest{Id: group, Delta: int32(delta)}) //nolint:gosec // small
	return err
}

func (p *provider) decrease(ctx context.Context, group string, delta int) error {
	_, err := call(ctx, p, fmt.Sprintf("DecreaseTargetSize(%d)", delta), p.client.NodeGroupDecreaseTargetSize,
		&protos.NodeGroupDecreaseTargetSizeRequest{Id: group, Delta: int32(delta)}) //nolint:gosec // small
	return err
}

// remove deletes instances. It sends only their ids, as CA does for instances without Nodes.
func (p *provider) remove(ctx context.Context, group string, ids ...string) error {
	req := &protos.NodeGroupDeleteNodesRequest{Id: group}
	for _, id := range ids {
		req.Nodes = append(req.Nodes, fakeNode(id))
	}
	_, err := call(ctx, p, "DeleteNodes", p.client.NodeGroupDeleteNodes, req)
	return err
}

// fakeNode returns the Node object that CA creates in memory for an instance that has no Node.
func fakeNode(id string) *protos.ExternalGrpcNode {
	return &protos.ExternalGrpcNode{Name: id, ProviderID: id,
		Annotations: map[string]string{"k8s.io/cluster-autoscaler/fake-node-reason": "unregistered"}}
}

func unimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }
