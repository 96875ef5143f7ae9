package liqo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// nodeMade returns a virtual node of ours, with or without a network.
func nodeMade(networkless bool) *offloadingv1beta1.VirtualNode {
	return &offloadingv1beta1.VirtualNode{ObjectMeta: named(localNS, "lca-g-abc-0-1", mine(), of(peer)),
		Spec: offloadingv1beta1.VirtualNodeSpec{DisableNetworkCheck: ptr.To(networkless)}}
}

// The offer's network changes while the provider has nodes. New nodes still get the same network as the existing
// nodes.
func TestNewNodesHaveTheNetworkOfExistingNodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has    []client.Object
		offer  fleet.Provider
		wanted bool // the new node has no network
	}{
		"no nodes, none":       {nil, networked(fleet.NetworkNone, ""), true},
		"no nodes, gateway":    {nil, networked(fleet.NetworkGateway, ""), false},
		"from none to gateway": {[]client.Object{nodeMade(true)}, networked(fleet.NetworkGateway, ""), true},
		"from gateway to none": {[]client.Object{nodeMade(false)}, networked(fleet.NetworkNone, ""), false},
		"only foreign nodes":   {[]client.Object{foreignNode()}, networked(fleet.NetworkGateway, ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				slice := accepted("2")
				delete(slice.Status.NodeLabels, "color")
				w := newClusters(t, peered(append(c.has, slice, sliceIdentity(),
					optionsOf("liqo", standardOptions, "virtual-kubelet:2"))...), nil)
				s := spec()
				s.Attempt.Provider = c.offer
				_, err := w.Join(soon(t), s, nil)
				var stage *backend.StageError
				require.ErrorAs(t, err, &stage)
				require.Equal(t, backend.StageVirtualKubelet, stage.Stage, "%v", err)
				var virtual offloadingv1beta1.VirtualNode
				require.NoError(t, w.local.Get(t.Context(), client.ObjectKey{Namespace: localNS, Name: "lca-g-abc-1-1"}, &virtual))
				require.Equal(t, c.wanted, ptr.Deref(virtual.Spec.DisableNetworkCheck, false))
				require.Equal(t, c.wanted, virtual.Spec.VkOptionsTemplateRef != nil)
			})
		})
	}
}

// The offer's network changes while nodes need our network. Establish repairs the network with its original settings.
func TestNetworkKeepsItsSettingsAfterAnOfferChange(t *testing.T) {
	t.Parallel()
	for name, offer := range map[string]fleet.Provider{
		"none":        networked(fleet.NetworkNone, ""),
		"existing":    networked(fleet.NetworkExisting, ""),
		"other place": networked(fleet.NetworkGateway, `{"serverLocation":"consumer"}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := withLiqo(t, []client.Object{tenantNS(peer, mine()), controlPlane(mine()), controlPlaneSecret(),
				nodeMade(false)}, []client.Object{tenantNS(me), tenantIn("")})
			require.NoError(t, connecting(prompt(t), w, networked("", ""), nil))
			dials := netObjects(t, w)["here GatewayClient "+localNS+"/"+peer]
			require.NoError(t, w.local.Delete(t.Context(), dials))
			offer.Credentials = known().Credentials
			seen, err := w.Observe(prompt(t), offer)
			require.NoError(t, err)
			require.NotEmpty(t, seen.Network)
			require.NoError(t, connecting(prompt(t), w, offer, nil))
			require.Equal(t, wholeNetwork, namesOf(netObjects(t, w)))
			seen, err = w.Observe(prompt(t), offer)
			require.NoError(t, err)
			require.Empty(t, seen.Network)
		})
	}
}

func foreignNode() *offloadingv1beta1.VirtualNode {
	node := nodeMade(true)
	node.Labels = of(peer)
	return node
}

// Our nodes were made with a network, and then all objects of the network were removed. Observe reports the missing
// network, and Establish makes it again.
func TestRemovedNetworkIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		node  client.Object
		again bool
	}{
		"made with it":   {nodeMade(false), true},
		"made without":   {nodeMade(true), false},
		"a foreign node": {foreignNode(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := withLiqo(t, []client.Object{tenantNS(peer, mine()), controlPlane(mine()), controlPlaneSecret(), c.node},
				[]client.Object{tenantNS(me), tenantIn("")})
			seen, err := w.Observe(prompt(t), known())
			require.NoError(t, err)
			require.NoError(t, connecting(prompt(t), w, networked("", ""), nil))
			if !c.again {
				require.Empty(t, seen.Network)
				require.Empty(t, netObjects(t, w), "it stays as it is")
				return
			}
			require.Equal(t, "the network with provider provider1 was removed, on both clusters", seen.Network)
			require.False(t, seen.NetworkHere)
			require.Equal(t, wholeNetwork, namesOf(netObjects(t, w)))
			seen, err = w.Observe(prompt(t), known())
			require.NoError(t, err)
			require.Empty(t, seen.Network)
		})
	}
}

// Our own API server fails while the backend checks the network or reads the pinned values. The backend does not blame
// the provider for this failure.
func TestObserveDoesNotBlameTheProviderForOurFaults(t *testing.T) {
	t.Parallel()
	refused := errors.New("dial tcp 10.0.0.1:443: connect: connection refused")
	for name, fails := range map[string]interceptor.Funcs{
		"network": {List: func(ctx context.Context, cluster client.WithWatch, list client.ObjectList,
			opts ...client.ListOption) error {
			if strings.HasPrefix(list.GetObjectKind().GroupVersionKind().Group, "networking.") {
				return refused
			}
			return cluster.List(ctx, list, opts...)
		}},
		"pin": {Get: func(ctx context.Context, cluster client.WithWatch, key client.ObjectKey, object client.Object,
			opts ...client.GetOption) error {
			if strings.HasPrefix(key.Name, "controlplane-") {
				return refused
			}
			return cluster.Get(ctx, key, object, opts...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := withLiqo(t, peered(accepted("2")), []client.Object{tenantNS(me), tenantIn(""), replica()})
			w.local = interceptor.NewClient(w.watch, fails)
			seen, err := w.Observe(prompt(t), known())
			require.ErrorIs(t, err, refused)
			require.NotErrorIs(t, err, backend.ErrUnreachable)
			require.NotErrorIs(t, err, backend.ErrCredentials)
			require.Zero(t, seen)
		})
	}
}
