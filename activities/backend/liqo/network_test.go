package liqo

import (
	"context"
	"encoding/base64"
	"testing"
	"testing/synctest"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// connecting runs only the network stages of an Establish.
func connecting(ctx context.Context, c *clusters, p fleet.Provider, progress backend.Progress) error {
	q := c.peering(p)
	w := c.making(ctx, progress)
	var foreign bool
	err := w.until(ctx, backend.StageAPIServer, func(ctx context.Context) (bool, string, error) {
		err := q.locate(ctx)
		if err == nil {
			err = q.locateRemote(ctx)
		}
		if err == nil {
			foreign, err = q.hasOtherOwner(ctx)
		}
		return err == nil, "", err
	})
	if err != nil {
		return err
	}
	return q.connect(ctx, w, foreign)
}

var wholeNetwork = map[string]bool{
	"here Configuration " + localNS + "/" + peer: true, "there Configuration " + remoteNS + "/" + me: true,
	"here GatewayClient " + localNS + "/" + peer: true, "there GatewayServer " + remoteNS + "/" + me: true,
	"here PublicKey " + localNS + "/" + peer: true, "there PublicKey " + remoteNS + "/" + me: true,
	"here Connection " + localNS + "/gw-" + peer: true, "there Connection " + remoteNS + "/gw-" + me: true,
}

func field(t *testing.T, o *unstructured.Unstructured, path ...string) any {
	t.Helper()
	require.NotNil(t, o)
	value, _, err := unstructured.NestedFieldCopy(o.Object, path...)
	require.NoError(t, err)
	return value
}

// Establish makes the same objects as `liqoctl network connect`, in the same order, with our labels.
func TestEstablishMakesTheNetwork(t *testing.T) {
	t.Parallel()
	c, _ := withLiqo(t, nil, nil)
	var order []backend.Stage
	require.NoError(t, connecting(prompt(t), c, networked("", ""), func(stage backend.Stage, _ string) {
		if len(order) == 0 || order[len(order)-1] != stage {
			order = append(order, stage)
		}
	}))
	require.Equal(t, []backend.Stage{backend.StageAPIServer, backend.StageNetworkConfig, backend.StageGatewayServer,
		backend.StageGatewayClient, backend.StageGatewayKeys, backend.StageConnection}, order)
	found := netObjects(t, c)
	require.Equal(t, wholeNetwork, namesOf(found))
	for name, o := range found {
		if o.GetKind() != kindConnection {
			require.True(t, c.isOurs(me, o), name)
			require.NotEmpty(t, o.GetLabels()[consts.RemoteClusterID], name)
		}
	}
	here, there := "here ", "there "
	conf := found[here+"Configuration "+localNS+"/"+peer]
	require.Equal(t, []any{"10.2.0.0/16"}, field(t, conf, "spec", "remote", "cidr", "pod"), "the provider's")
	require.Equal(t, []any{"10.1.0.0/16"}, field(t, found[there+"Configuration "+remoteNS+"/"+me], "spec", "remote",
		"cidr", "pod"))
	server := found[there+"GatewayServer "+remoteNS+"/"+me]
	require.Equal(t, map[string]any{"port": int64(51840), "serviceType": "LoadBalancer"}, field(t, server, "spec",
		"endpoint"))
	require.Equal(t, map[string]any{"apiVersion": "networking.liqo.io/v1beta1", "kind": "WgGatewayServerTemplate",
		"name": "wireguard-server", "namespace": "liqo"}, field(t, server, "spec", "serverTemplateRef"))
	dials := found[here+"GatewayClient "+localNS+"/"+peer]
	require.Equal(t, map[string]any{"addresses": []any{"203.0.113.1"}, "port": int64(51840), "protocol": "UDP"}, field(t,
		dials, "spec", "endpoint"))
	key := found[here+"PublicKey "+localNS+"/"+peer]
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("public key of "+remoteNS)), field(t, key, "spec",
		"publicKey"))
	require.Equal(t, consts.GatewayResourceLabelValue, key.GetLabels()[consts.GatewayResourceLabel])
	require.Equal(t, "GatewayClient", key.GetOwnerReferences()[0].Kind, "it goes with its gateway")
	require.NotEmpty(t, conf.GetAnnotations()[backend.AnnotationCredentials])
	require.Empty(t, found[there+"Configuration "+remoteNS+"/"+me].GetAnnotations())

	peers, err := c.Peers(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, []fleet.Provider{known()}, peers)
	require.NoError(t, connecting(prompt(t), c, networked("", ""), nil), "twice")
	require.Equal(t, wholeNetwork, namesOf(netObjects(t, c)))
}

// In a version of Liqo after 1.2 a GatewayServer has several ports instead of one, and the GatewayClient uses them.
// After an upgrade of Liqo to such a version, Establish converts our GatewayClient.
func TestNetworkSupportsSeveralPorts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testNetworkWithSeveralPorts)
}

func testNetworkWithSeveralPorts(t *testing.T) {
	c, p := withLiqo(t, nil, nil)
	p.idle[kindConnection] = true
	require.ErrorContains(t, connecting(soon(t), c, networked("", ""), nil), "waiting for connection")
	server, client := "there GatewayServer "+remoteNS+"/"+me, "here GatewayClient "+localNS+"/"+peer
	require.Equal(t, int64(51840), field(t, netObjects(t, c)[client], "spec", "endpoint", "port"))

	p.ports = []any{int64(51840), int64(51841)}
	upgraded := netObjects(t, c)[server]
	require.NoError(t, unstructured.SetNestedMap(upgraded.Object, p.listens(), "status", "endpoint"))
	require.NoError(t, c.there.Update(t.Context(), upgraded))
	require.ErrorContains(t, connecting(soon(t), c, networked("", ""), nil), "waiting for connection")
	want := map[string]any{"addresses": []any{"203.0.113.1"}, "ports": p.ports, "protocol": "UDP"}
	require.Equal(t, want, field(t, netObjects(t, c)[client], "spec", "endpoint"))

	fresh, p := withLiqo(t, nil, nil)
	p.ports = []any{int64(51840), int64(51841)}
	require.NoError(t, connecting(prompt(t), fresh, networked("", ""), nil))
	require.Equal(t, want, field(t, netObjects(t, fresh)[client], "spec", "endpoint"))
}

// Establish waits while a GatewayServer has no port, because its client would connect to port 0.
func TestNetworkWaitsForThePort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, p := withLiqo(t, nil, nil)
		p.ports = []any{}
		err := connecting(soon(t), c, networked("", ""), nil)
		require.ErrorContains(t, err, "the GatewayServer on provider provider1 has no port yet")
		require.NotContains(t, netObjects(t, c), "here GatewayClient "+localNS+"/"+peer)
	})
}

func TestNetworkOptionsAreApplied(t *testing.T) {
	t.Parallel()
	c, _ := withLiqo(t, nil, nil)
	require.NoError(t, connecting(prompt(t), c, networked(fleet.NetworkGateway, `{"serverLocation":"consumer",`+
		`"serviceType":"NodePort","servicePort":51841,"nodePort":31840,"clientAddress":"gw.example.com","clientPort":4500,`+
		`"mtu":1200}`), nil))
	found := netObjects(t, c)
	server := found["here GatewayServer "+localNS+"/"+peer]
	require.Equal(t, map[string]any{"port": int64(51841), "serviceType": "NodePort", "nodePort": int64(31840)}, field(t,
		server, "spec", "endpoint"))
	dials := found["there GatewayClient "+remoteNS+"/"+me]
	require.Equal(t, map[string]any{"addresses": []any{"gw.example.com"}, "port": int64(4500), "protocol": "UDP"}, field(t,
		dials, "spec", "endpoint"))
	require.Equal(t, int64(1200), field(t, dials, "spec", "mtu"))
	require.Equal(t, int64(1200), field(t, server, "spec", "mtu"))
}

func TestInvalidNetworkOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for options, says := range map[string]string{
		`{"serverLocation":"moon"}`:                                 "serverLocation is neither",
		`{"serviceType":"ExternalName"}`:                            "serviceType is none of",
		`{"nodePort":31840}`:                                        "nodePort is for serviceType: NodePort only",
		`{"loadBalancerIP":"1.2.3.4","serviceType":"ClusterIP"}`:    "loadBalancerIP is for",
		`{"loadBalancerIP":"here"}`:                                 "loadBalancerIP is not an IP",
		`{"clientAddress":"not a name"}`:                            "clientAddress is neither",
		`{"clientPort":70000}`:                                      "clientPort is not a port",
		`{"mtu":1}`:                                                 "mtu is not between",
		`{"templateName":"mine"}`:                                   `unknown field "templateName"`,
		`{"clientAddress":"` + string(make([]byte, 2000)) + `"}`:    "more than 1024 bytes",
		`{"serviceType":"NodePort","nodePort":-1,"servicePort":-5}`: "servicePort is not a port",
	} {
		c, _ := withLiqo(t, nil, nil)
		err := c.Establish(prompt(t), networked("", options), nil)
		require.ErrorIs(t, err, backend.ErrInvalid, options)
		require.ErrorContains(t, err, says)
		require.Empty(t, netObjects(t, c))
		require.False(t, exists(t, c.local, tenantNS(peer)), "bad input changes nothing")
	}
	c, _ := withLiqo(t, nil, nil)
	require.ErrorContains(t, connecting(prompt(t), c, networked("tunnel", ""), nil), "write gateway, existing or none")
}

// Liqo's networking module is missing on the consumer or on the provider. Establish fails without waiting.
func TestMissingNetworkingModuleFailsImmediately(t *testing.T) {
	t.Parallel()
	for _, here := range []bool{true, false} {
		var ours, theirs []client.Object
		if here {
			theirs = ipamOf("10.2.0.0/16", "10.70.0.0/16")
		} else {
			ours = ipamOf("10.1.0.0/16", "10.70.0.0/16")
		}
		c := newClusters(t, ours, theirs)
		err := c.Establish(prompt(t), networked("", ""), nil)
		require.ErrorIs(t, err, backend.ErrInvalid)
		require.ErrorContains(t, err, "NetworkingNotInstalled: Liqo on ")
		require.ErrorContains(t, err, "network: {mode: none}")
		require.Empty(t, netObjects(t, c))
		require.NoError(t, c.RemovePeering(prompt(t), networked("", ""), nil))
		require.False(t, exists(t, c.local, tenantNS(peer)))
	}
}

// Liqo stops at one stage, and Establish returns an error that names this stage. Afterwards the network can be
// completed, or its objects can be removed.
func TestNetworkIsCompletedOrRemovedAfterACut(t *testing.T) {
	t.Parallel()
	for kind, stage := range map[string]backend.Stage{
		kindConfiguration: backend.StageNetworkConfig, kindServer: backend.StageGatewayServer,
		kindClient: backend.StageGatewayClient, kindKey: backend.StageConnection, kindConnection: backend.StageConnection,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, liqo := withLiqo(t, nil, nil)
				liqo.idle[kind] = true
				err := connecting(soon(t), c, networked("", ""), nil)
				var at *backend.StageError
				require.ErrorAs(t, err, &at)
				require.Equal(t, stage, at.Stage, "%v", err)
				require.NotEmpty(t, at.Message)
				require.NotEmpty(t, netObjects(t, c))

				require.NoError(t, c.RemovePeering(prompt(t), networked("", ""), nil))
				require.Empty(t, netObjects(t, c))
				require.False(t, exists(t, c.local, tenantNS(peer)))
				require.False(t, exists(t, c.there, tenantNS(me)))
				liqo.idle[kind] = false
				require.NoError(t, connecting(prompt(t), c, networked("", ""), nil))
				require.Equal(t, wholeNetwork, namesOf(netObjects(t, c)))
			})
		})
	}
}

func TestNetworkIsCompletedAfterAnyFailedCreate(t *testing.T) {
	t.Parallel()
	for _, kind := range made {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, liqo := withLiqo(t, nil, nil)
				liqo.refuse[kind] = apierrors.NewForbidden(schema.GroupResource{}, kind, nil)
				require.ErrorContains(t, connecting(seconds(t), c, networked("", ""), nil), kind)
				delete(liqo.refuse, kind)
				require.NoError(t, connecting(prompt(t), c, networked("", ""), nil))
				require.Equal(t, wholeNetwork, namesOf(netObjects(t, c)))
			})
		})
	}
}

// foreignNetwork returns a network that was made by hand.
func foreignNetwork(value string) (here, there []client.Object) {
	for _, side := range []struct {
		to          *[]client.Object
		kind        string
		ns, cluster string
	}{{&here, kindClient, localNS, peer}, {&there, kindServer, remoteNS, me}} {
		label := of(side.cluster)
		*side.to = append(*side.to, tenantNS(side.cluster),
			netObject(networking.WithKind(kindConfiguration), side.ns, side.cluster, label, map[string]any{}),
			netObject(networking.WithKind(side.kind), side.ns, side.cluster, label, map[string]any{}),
			netObject(networking.WithKind(kindConnection), side.ns, "gw-"+side.cluster, label,
				map[string]any{"status": map[string]any{"value": value}}))
	}
	return here, there
}

// A network of another owner exists. Establish uses it when it is connected, and otherwise fails. It never changes
// the objects of this network.
func TestForeignNetworkIsUsedWhenConnected(t *testing.T) {
	t.Parallel()
	for _, mode := range []fleet.NetworkMode{fleet.NetworkGateway, fleet.NetworkExisting} {
		for _, value := range []string{"Connected", "Connecting", ""} {
			here, there := foreignNetwork(value)
			c, _ := withLiqo(t, here, there)
			before := netObjects(t, c)
			err := connecting(prompt(t), c, networked(mode, ""), nil)
			if value == "Connected" {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, backend.ErrConflict)
				require.ErrorContains(t, err, "ForeignNetworkNotConnected: the network was made by others (Configuration")
			}
			require.Equal(t, before, netObjects(t, c))
			require.NoError(t, c.RemovePeering(prompt(t), networked(mode, ""), nil))
			require.Equal(t, before, netObjects(t, c), "it is left")
		}
	}
}

func TestNetworkIsNotAddedToAForeignPeering(t *testing.T) {
	t.Parallel()
	// If another owner's peering has no network, Establish fails and makes none.
	c, _ := withLiqo(t, []client.Object{tenantNS(peer), controlPlane(), controlPlaneSecret()},
		[]client.Object{tenantNS(me)})
	err := connecting(prompt(t), c, networked("", ""), nil)
	require.ErrorContains(t, err, "ForeignNetworkNotConnected: the peering was made by others, and has no network")
	require.Empty(t, netObjects(t, c))

	// Establish adds no network to a peering that has nodes.
	node := &offloadingv1beta1.VirtualNode{ObjectMeta: named(localNS, "n", of(peer))}
	c, _ = withLiqo(t, []client.Object{tenantNS(peer, mine()), controlPlane(mine()), node}, []client.Object{tenantNS(me)})
	require.NoError(t, connecting(prompt(t), c, networked("", ""), nil))
	require.Empty(t, netObjects(t, c))

	// With the mode `existing`, Establish makes no network. When no network exists, it fails.
	c, _ = withLiqo(t, nil, nil)
	err = connecting(prompt(t), c, networked(fleet.NetworkExisting, ""), nil)
	require.ErrorContains(t, err, "ForeignNetworkNotConnected: the offer has network mode existing")
	require.Empty(t, netObjects(t, c))
}

// A peering or slice of another owner uses our network, in either direction. The removal keeps the network and
// returns ErrInUse (invariant I11).
func TestNetworkInForeignUseStays(t *testing.T) {
	t.Parallel()
	for name, add := range map[string]func(*testing.T, *clusters){
		"their peering over our network": func(t *testing.T, c *clusters) {
			require.NoError(t, c.local.Create(t.Context(), controlPlane()))
		},
		"the other direction": func(t *testing.T, c *clusters) {
			require.NoError(t, c.local.Create(t.Context(), &authv1beta1.Tenant{ObjectMeta: named(localNS, peer, of(peer))}))
		},
		"their Tenant": func(t *testing.T, c *clusters) { require.NoError(t, c.there.Create(t.Context(), tenantOf())) },
		"their slice": func(t *testing.T, c *clusters) {
			require.NoError(t, c.local.Create(t.Context(), &authv1beta1.ResourceSlice{ObjectMeta: named(localNS, "s",
				outgoing(peer))}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := withLiqo(t, nil, nil)
			require.NoError(t, connecting(prompt(t), c, networked("", ""), nil))
			add(t, c)
			require.ErrorIs(t, c.RemovePeering(prompt(t), networked("", ""), nil), backend.ErrInUse)
			_, _, err := c.peering(known()).networkGone(t.Context()) // the last check, right before the network is removed
			require.ErrorIs(t, err, backend.ErrInUse)
			require.Equal(t, wholeNetwork, namesOf(netObjects(t, c)))
		})
	}
}

// The address of the gateway's server has changed. Establish updates our objects if the connection is broken. It
// changes nothing while the network works.
func TestNetworkIsRepairedAfterAChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := withLiqo(t, nil, nil)
		require.NoError(t, connecting(prompt(t), c, networked("", ""), nil))
		found := netObjects(t, c)
		server := found["there GatewayServer "+remoteNS+"/"+me]
		require.NoError(t, unstructured.SetNestedStringSlice(server.Object, []string{"203.0.113.2"}, "status", "endpoint",
			"addresses"))
		require.NoError(t, c.there.Update(t.Context(), server))
		require.NoError(t, connecting(prompt(t), c, networked("", ""), nil))
		dials := func() any {
			return field(t, netObjects(t, c)["here GatewayClient "+localNS+"/"+peer], "spec", "endpoint", "addresses")
		}
		require.Equal(t, []any{"203.0.113.1"}, dials(), "a network that works is let alone")

		c.breakConnection(t)
		err := connecting(soon(t), c, networked("", ""), nil)
		require.ErrorContains(t, err, "the Connection on this cluster is Error")
		require.Equal(t, []any{"203.0.113.2"}, dials())
	})
}

// breakConnection makes this cluster's gateway report an error.
func (c *clusters) breakConnection(t *testing.T) {
	t.Helper()
	broken := netObjects(t, c)["here Connection "+localNS+"/gw-"+peer]
	require.NoError(t, unstructured.SetNestedField(broken.Object, "Error", "status", "value"))
	require.NoError(t, c.local.Update(t.Context(), broken))
}

// The tenant namespaces existed before our peering and are not ours, so only the network's objects record the
// provider. Peers finds the provider by these objects, and RemovePeering removes only them.
func TestNetworkRecordsTheProviderInForeignNamespaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := withLiqo(t, []client.Object{tenantNS(peer)}, []client.Object{tenantNS(me)})
		require.NoError(t, connecting(prompt(t), c, networked("", ""), nil))
		peers, err := c.Peers(t.Context(), "")
		require.NoError(t, err)
		require.Equal(t, []fleet.Provider{known()}, peers)

		c.down = true
		require.ErrorIs(t, c.RemovePeering(soon(t), known(), nil), context.DeadlineExceeded, "it does not give up")
		require.Equal(t, wholeNetwork, namesOf(netObjects(t, c)))
		c.down = false
		require.NoError(t, c.RemovePeering(prompt(t), known(), nil))
		require.Empty(t, netObjects(t, c))
		require.True(t, exists(t, c.local, tenantNS(peer)))
		require.True(t, exists(t, c.there, tenantNS(me)))
		peers, err = c.Peers(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, peers)
	})
}
