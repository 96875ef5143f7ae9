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

// What an offer says of the network counts for a peering that nobody holds. While there are virtual nodes on the
// provider, a changed offer changes nothing: they, and those that come, have what the first was made with.

// virtualThere are the virtual nodes on the provider, whoever made them.
func (p *peering) virtualThere(ctx context.Context) ([]offloadingv1beta1.VirtualNode, error) {
	var there offloadingv1beta1.VirtualNodeList
	if err := p.local.List(ctx, &there, client.MatchingLabels{consts.RemoteClusterID: p.provider.ID}); err != nil {
		return nil, fmt.Errorf("list virtual nodes on %s: %w", p.provider.ID, err)
	}
	return there.Items, nil
}

// networkHeld is what our virtual nodes on the provider, but for the one of that name, were made with: gateway stands
// for any network. held is false while there are none.
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

// needless reports whether no network is wanted: the offer wants none, and no node was made with one.
func (n *network) needless(ctx context.Context) (bool, error) {
	there, err := n.virtualThere(ctx)
	n.held = n.networkNeeded(there)
	return n.mode == fleet.NetworkNone && !n.held, err
}

// heldWithout reports whether there are nodes on the provider that never had a network: their pods live without, and a
// half-made one would take the nodes from them.
func (n *network) heldWithout(ctx context.Context) (bool, error) {
	there, err := n.virtualThere(ctx)
	return len(there) > 0 && !n.networkNeeded(there), err
}

// networkNeeded reports whether nodes of ours were made with a network, which somebody may have removed since.
func (p *peering) networkNeeded(there []offloadingv1beta1.VirtualNode) bool {
	mode, _ := p.networkHeld(there, "")
	return mode == fleet.NetworkGateway
}
