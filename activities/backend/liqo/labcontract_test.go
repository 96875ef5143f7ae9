package liqo_test

import (
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/backendtest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// TestLabContract runs the contract suite (backendtest) on real Liqo.
func TestLabContract(t *testing.T) {
	l := theLab(t)
	l.offload(t)
	backendtest.Run(t, backendtest.Harness{
		Backend:   l.backend(t),
		Other:     l.backend(t),
		Providers: [2]fleet.Provider{l.provider(1), l.provider(2)},
		Shape:     nodeShape(),
		Group:     group,
		Bound:     2 * time.Minute, // a virtual kubelet registers a deleted Node again within a minute
		Pass:      2 * time.Second, // shorter than the grace period of each stage

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
			// Forget stays nil, because crd-replicator may remove the provider's copy of a deleted slice at any time.
			// TestLabNetworkLeft tests a forgotten peering instead.
		},
	})
}
