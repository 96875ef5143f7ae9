package liqo_test

import (
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// TestLabContract checks all promises of the port on real Liqo.
func TestLabContract(t *testing.T) {
	l := theLab(t)
	l.offload(t)
	backendtest.Run(t, backendtest.Harness{
		Backend:   l.backend(t),
		Other:     l.backend(t),
		Providers: [2]fleet.Provider{l.provider(1), l.provider(2)},
		Shape:     nodeShape(),
		Group:     group,
		Bound:     2 * time.Minute, // a virtual kubelet registers a deleted Node again after a minute
		Pass:      2 * time.Second, // shorter than each grace

		RefusedFor: refusedFor,

		TaintsLate: oneSlice(),
		World: backendtest.World{
			Objects:           l.objects,
			Node:              l.node,
			PutPod:            l.putPod,
			Pods:              l.pods,
			PutSlice:          l.putSlice,
			PutNode:           l.putNode,
			PutPeering:        l.putPeering,
			DeleteNode:        l.deleteNode,
			DeleteVirtualNode: l.remove(offloading("virtualnodes")),
			DeleteSlice:       l.remove(authentication("resourceslices")),
			SliceThere:        l.sliceThere,
			SetProviderID:     l.setProviderID,
			Unreachable:       unreachable,
			Stall:             l.stall,
			StallStage:        backend.StageNonce,
			Cut:               l.cut,
			Deny:              l.deny("Cordoned"),
			Close:             l.close,
			Shrink:            l.shrink,
			// Forget stays nil: a slice that is deleted while crd-replicator runs may be removed from the provider at any time.
			// TestLabNetworkLeft forgets a peering instead.
		},
	})
}
