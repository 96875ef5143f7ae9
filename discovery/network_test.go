package discovery_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func withNetwork(t *testing.T, network string) (discovery.Spec, error) {
	t.Helper()
	return discovery.ParseOffer([]byte(goodOffer + "network: " + network + "\n"))
}

// An offer's network has a mode, which our code reads. Our code passes on all other fields of the network as one
// block, which it does not interpret.
func TestNetworkFieldsArePassedOn(t *testing.T) {
	spec, err := withNetwork(t, "{serverLocation: consumer, serviceType: NodePort, servicePort: 51841, nodePort: 31840, "+
		"clientAddress: gw.example.com, clientPort: 4500, mtu: 1280}")
	require.NoError(t, err)
	o := spec.Offer()
	require.Equal(t, fleet.NetworkGateway, o.Network.ModeOrDefault())
	require.JSONEq(t, `{"serverLocation":"consumer","serviceType":"NodePort","servicePort":51841,"nodePort":31840,`+
		`"clientAddress":"gw.example.com","clientPort":4500,"mtu":1280}`, string(o.Network.Options))
	c := discovery.CopyOffer(o)
	require.Equal(t, o, c)
	c.Network.Options[0] = '!'
	require.EqualValues(t, '{', o.Network.Options[0], "a copy of its own")

	spec, err = withNetwork(t, "{mode: none}")
	require.NoError(t, err)
	require.Equal(t, &fleet.Network{Mode: fleet.NetworkNone}, spec.Offer().Network)
	require.NotEqual(t, discovery.Epoch(o), discovery.Epoch(spec.Offer()))
	spec, err = discovery.ParseOffer([]byte(goodOffer))
	require.NoError(t, err)
	require.Nil(t, spec.Offer().Network)
	spec, err = withNetwork(t, "{mode: none}\nvirtualKubelet: small")
	require.NoError(t, err)
	require.Equal(t, &fleet.Network{Mode: fleet.NetworkNone, Options: []byte(`{"virtualKubelet":"small"}`)},
		spec.Offer().Network)
	spec, err = discovery.ParseOffer([]byte(goodOffer + "virtualKubelet: small\n"))
	require.NoError(t, err)
	require.Equal(t, &fleet.Network{Options: []byte(`{"virtualKubelet":"small"}`)}, spec.Offer().Network)

	// The largest possible block of fields stays small.
	spec, err = withNetwork(t, "{serverLocation: consumer, serviceType: LoadBalancer, servicePort: 65535, "+
		"loadBalancerIP: 'ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255', clientAddress: "+
		strings.Repeat("a.", 126)+"a, clientPort: 65535, "+
		"mtu: 9000}\nvirtualKubelet: "+strings.Repeat("a.", 126)+"a")
	require.NoError(t, err)
	require.Less(t, len(spec.Offer().Network.Options), fleet.MaxNetworkOptions)
}

func TestInvalidNetworkIsReported(t *testing.T) {
	for network, want := range map[string]string{
		"{mode: tunnel}":                           `network.mode: got "tunnel", want one of gateway, existing, none`,
		"{mode: none, mtu: 1300}":                  "network: mode none creates no gateway: remove all fields except mode",
		"{mode: existing, serviceType: NodePort}":  "network: mode existing creates no gateway",
		"{serverLocation: moon}":                   `network.serverLocation: got "moon", want one of provider, consumer`,
		"{serviceType: ExternalName}":              "network.serviceType: got",
		"{nodePort: 31840}":                        "network.nodePort: is for serviceType: NodePort only",
		"{serviceType: NodePort, nodePort: 70000}": "network.nodePort: is 70000: give at most 65535",
		"{loadBalancerIP: here}":                   `network.loadBalancerIP: "here" is not an IP address`,

		"{loadBalancerIP: 1.2.3.4, serviceType: ClusterIP}": "network.loadBalancerIP: is for serviceType: LoadBalancer only",
		"{clientAddress: not/a/name}":                       `network.clientAddress: "not/a/name" is neither an IP address nor a DNS name`,
		"{mtu: 100}":                                        "network.mtu: is 100: give at least 576",
		"{templateName: mine}":                              "network.templateName: unknown field",
		"{mode: none}\nvirtualKubelet: not/a/name":          `virtualKubelet: "not/a/name" is not a DNS-1123 subdomain`,
	} {
		_, err := withNetwork(t, network)
		require.ErrorContains(t, err, want)
		require.Len(t, strings.Split(err.Error(), "\n"), 1, "one fault, one line: %v", err)
	}
}
