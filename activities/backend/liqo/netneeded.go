package liqo

import (
	"context"
	"fmt"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The network in an offer applies only to a peering without virtual nodes. While virtual nodes are on the provider, a
// changed offer has no effect: existing and new nodes have the network with which the first node was made.

// virtualThere lists the virtual nodes on the provider, of any owner.
func (p *peering) virtualThere(ctx context.Context) ([]offloadingv1beta1.VirtualNode, error) {
	var there offloadingv1beta1.VirtualNodeList
	if err := p.local.List(ctx, &there, client.MatchingLabels{consts.RemoteClusterID: p.provider.ID}); err != nil {
		return nil, fmt.Errorf("list virtual nodes on %s: %w", p.provider.ID, err)
	}
	return there.Items, nil
}

// networkHeld returns the network mode with which our virtual nodes on the provider were made. It ignores the node
// whose name is in the parameter but. The mode is gateway if any of these nodes was made with a network of any mode.
// The result held is false if no such node exists.
func (p *peering) networkHeld(there []offloadingv1beta1.VirtualNode, but string) (mode fleet.NetworkMode, held bool) {
	for i := range there {
		switch virtual := &there[i]; {
		case virtual.Name == but || !p.mine(virtual):
		case !ptr.Deref(virtual.Spec.DisableNetworkCheck, false):
			return fleet.NetworkGateway, true
		default:
			mode, held = fleet.NetworkNone, true
		}
	}
	return mode, held
}

// needless reports whether the peering needs no network: the offer requests none, and no node was made with a network.
func (n *network) needless(ctx context.Context) (bool, error) {
	there, err := n.virtualThere(ctx)
	n.held = n.networkNeeded(there)
	return n.mode == fleet.NetworkNone && !n.held, err
}

// heldWithout reports whether the provider has virtual nodes and none of ours was made with a network. Their pods run
// without a network, and a network that is being made would make the nodes not Ready.
func (n *network) heldWithout(ctx context.Context) (bool, error) {
	there, err := n.virtualThere(ctx)
	return len(there) > 0 && !n.networkNeeded(there), err
}

// networkNeeded reports whether any of our nodes was made with a network. A user may have removed that network since.
func (p *peering) networkNeeded(there []offloadingv1beta1.VirtualNode) bool {
	mode, _ := p.networkHeld(there, "")
	return mode == fleet.NetworkGateway
}
