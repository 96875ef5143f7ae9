package liqo

import (
	"testing"
	"testing/synctest"

	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// A provider reports the addresses of its pods, and Liqo routes them on every node. Before Establish makes a gateway,
// it refuses addresses that are in use on this cluster. The provider of this test reports 10.9.0.0/16.
func TestProviderAddressesMustNotOverlap(t *testing.T) {
	t.Parallel()
	node := func(name, address string, labels map[string]string) client.Object {
		return &corev1.Node{ObjectMeta: named("", name, labels), Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeInternalIP, Address: address}}}}
	}
	ours := func(kind, cidr string) client.Object {
		return netObject(ipam.WithKind("Network"), "liqo", "a-"+kind, map[string]string{consts.NetworkTypeLabelKey: kind},
			map[string]any{"status": map[string]any{"cidr": cidr}})
	}
	other := func(peer, cidr string) client.Object {
		return netObject(networking.WithKind(kindConfiguration), "liqo-tenant-"+peer, peer,
			map[string]string{consts.RemoteClusterID: peer}, map[string]any{"status": map[string]any{
				"remote": map[string]any{"cidr": map[string]any{"pod": []any{cidr}}}}})
	}
	for what, test := range map[string]struct {
		there client.Object
		says  string // the expected error; "" if Establish makes the network
	}{
		"node":                      {node("n1", "10.9.3.4", nil), "overlaps with 10.9.3.4/32, an address of node n1"},
		"node elsewhere":            {node("n1", "10.8.3.4", nil), ""},
		"node with an IPv6 address": {node("n1", "fd00::1", nil), ""},
		"virtual node": {node("v1", "10.9.3.4", map[string]string{consts.RemoteClusterID: "turin"}),
			""},
		"Services":                  {ours("service-cidr", "10.9.128.0/20"), "the service-cidr of this cluster"},
		"pods":                      {ours("pod-cidr", "10.0.0.0/8"), "with 10.0.0.0/8, the pod-cidr of this cluster"},
		"another provider":          {other("turin", "10.9.0.0/24"), "the pods of cluster turin"},
		"another provider's others": {other("turin", "10.10.0.0/24"), ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := withLiqo(t, []client.Object{test.there}, nil)
				err := connecting(prompt(t), c, networked("", ""), nil)
				if test.says == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, backend.ErrInvalid)
				require.ErrorContains(t, err, "AddressesOverlap: Liqo would route 10.9.0.0/16 to the provider on every node")
				require.ErrorContains(t, err, test.says)
				require.ErrorContains(t, err, "ipam.reservedSubnets")
				for name, o := range netObjects(t, c) {
					require.Equal(t, kindConfiguration, o.GetKind(), "%s was made", name)
				}
			})
		})
	}
}

// A provider names the address of its gateway. Our gateway does not connect to this address if it belongs to this
// cluster or to the gateway's own host.
func TestGatewayDoesNotDialLocalAddresses(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: named("", "n1"), Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}}}
	for address, says := range map[string]string{
		"192.0.2.7":        "lies in 192.0.2.7/32, an address of node n1",
		"::ffff:192.0.2.7": "lies in 192.0.2.7/32, an address of node n1",
		"127.0.0.1":        "no address of a host in a network",
		"169.254.169.254":  "no address of a host in a network",
		"224.0.0.1":        "no address of a host in a network",
		"::1":              "no address of a host in a network",
		"0.0.0.0":          "no address of a host in a network",
		"gw.example.com":   "",
		"192.0.2.8":        "",
		"2001:db8::1":      "",
	} {
		t.Run(address, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, liqo := withLiqo(t, []client.Object{node.DeepCopy()}, nil)
				liqo.address = address
				err := connecting(prompt(t), c, networked("", ""), nil)
				client := netObjects(t, c)["here GatewayClient "+localNS+"/"+peer]
				if says == "" {
					require.NoError(t, err)
					require.NotNil(t, client)
					return
				}
				require.ErrorIs(t, err, backend.ErrInvalid)
				require.ErrorContains(t, err, "GatewayAddress: the provider's GatewayServer says that it is at "+address)
				require.ErrorContains(t, err, says)
				require.Nil(t, client)
			})
		})
	}
}

// A provider's addresses change while its network exists. The backend does not pass the new addresses to Liqo, so
// Liqo makes no route to them. If a person has changed our Configuration, the backend restores it.
func TestNetworkAddressesArePinned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := withLiqo(t, nil, nil)
		require.NoError(t, connecting(prompt(t), c, networked("", ""), nil))
		found := netObjects(t, c)
		c.breakConnection(t)
		pods := func() any {
			return field(t, netObjects(t, c)["here Configuration "+localNS+"/"+peer], "spec", "remote", "cidr", "pod")
		}
		changed := found["here Configuration "+localNS+"/"+peer]
		require.NoError(t, unstructured.SetNestedStringSlice(changed.Object, []string{"10.99.0.0/16"}, "spec", "remote",
			"cidr", "pod"))
		require.NoError(t, c.local.Update(t.Context(), changed))
		require.Error(t, connecting(soon(t), c, networked("", ""), nil), "the Connection stays broken")
		require.Equal(t, []any{"10.2.0.0/16"}, pods())

		network := netObject(ipam.WithKind("Network"), "liqo", "pod-cidr", nil, map[string]any{})
		require.NoError(t, c.there.Get(t.Context(), client.ObjectKeyFromObject(network), network))
		require.NoError(t, unstructured.SetNestedField(network.Object, "192.168.0.0/16", "status", "cidr"))
		require.NoError(t, c.there.Update(t.Context(), network))
		err := connecting(prompt(t), c, networked("", ""), nil)
		require.ErrorIs(t, err, backend.ErrInvalid)
		require.ErrorContains(t, err, "AddressesChanged: the provider now has the networks "+
			`{"external":["10.70.0.0/16"],"pod":["192.168.0.0/16"]}, and had `+
			`{"external":["10.70.0.0/16"],"pod":["10.2.0.0/16"]}`)
		require.Equal(t, []any{"10.2.0.0/16"}, pods())
	})
}
