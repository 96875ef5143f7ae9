package deploy_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// networkObject returns an object for the network with the consumer rome, in the form in which our worker creates it.
func networkObject(kind string, spec map[string]any) *unstructured.Unstructured {
	u := liqoObject(kind, consumerNamespace, "rome", spec)
	u.SetAPIVersion("networking.liqo.io/v1beta1")
	u.SetLabels(map[string]string{remoteID: "rome"})
	return u
}

// cidrs returns the spec of a Configuration with these networks for pods.
func cidrs(pods ...any) map[string]any {
	return map[string]any{"remote": map[string]any{"cidr": map[string]any{"pod": pods,
		"external": []any{"10.70.0.0/16"}}}}
}

// gateway returns the spec of a gateway whose template has this kind and namespace.
func gateway(field, kind, namespace string, more map[string]any) map[string]any {
	spec := map[string]any{"mtu": int64(1340), field: map[string]any{"apiVersion": "networking.liqo.io/v1beta1",
		"kind": kind, "name": "wireguard", "namespace": namespace}}
	for name, value := range more {
		spec[name] = value
	}
	return spec
}

// consumerNetwork checks that a consumer can only write the objects for its own network. The consumer must not be
// able to make this cluster's Liqo run a gateway that the consumer chooses.
func consumerNetwork(t *testing.T, c *cluster, h holder) {
	configurations := liqoKind("networking", "configurations")
	made := networkObject("Configuration", cidrs("10.1.0.0/16"))
	made.SetName("here")
	c.createServed(t, configurations, made)

	kinds := map[string]string{"Configuration": "configurations", "GatewayServer": "gatewayservers",
		"GatewayClient": "gatewayclients", "PublicKey": "publickeies"}
	create := func(u *unstructured.Unstructured, changes ...func(*unstructured.Unstructured)) func(context.Context) error {
		for _, change := range changes {
			change(u)
		}
		return h.createLiqo(liqoKind("networking", kinds[u.GetKind()]), consumerNamespace, u)
	}
	labels := func(labels map[string]string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.SetLabels(labels) }
	}
	server := func(namespace string, more map[string]any) *unstructured.Unstructured {
		return networkObject("GatewayServer", gateway("serverTemplateRef", "WgGatewayServerTemplate", namespace, more))
	}
	client := func(kind, namespace string, more map[string]any) *unstructured.Unstructured {
		return networkObject("GatewayClient", gateway("clientTemplateRef", kind, namespace, more))
	}
	patch := func(change string) func(context.Context) error {
		return h.patch(configurations, consumerNamespace, "here", change)
	}
	const template, form, keys = "a WireGuard template in the namespace", "at most 8 networks", "neither its keys"
	const clientTemplate = "WgGatewayClientTemplate"
	c.judge(t, []attempt{
		{"Configuration of another cluster", "remote-cluster-id of the network", create(networkObject("Configuration",
			cidrs("10.1.0.0/16")), labels(map[string]string{remoteID: "turin"}))},
		{"Configuration", "", create(networkObject("Configuration", cidrs("10.1.0.0/16", "fd00:10::/56")))},
		{"unchecked by Liqo", "liqo.io/webhook-skip", create(networkObject("Configuration", cidrs("10.1.0.0/16")),
			labels(map[string]string{remoteID: "rome", webhookSkip: "true"}))},
		{"all addresses", form, create(networkObject("Configuration", cidrs("0.0.0.0/0")))},
		{"half of all addresses", form, create(networkObject("Configuration", cidrs("128.0.0.0/1")))},
		{"addresses of the node itself", form, create(networkObject("Configuration", cidrs("169.254.0.0/16")))},
		{"nine networks", form, create(networkObject("Configuration", cidrs("10.1.0.0/24", "10.1.1.0/24", "10.1.2.0/24",
			"10.1.3.0/24", "10.1.4.0/24", "10.1.5.0/24", "10.1.6.0/24", "10.1.7.0/24", "10.1.8.0/24")))},
		{"the provider's own addresses", "only the field remote", create(networkObject("Configuration",
			map[string]any{"local": map[string]any{"cidr": map[string]any{"pod": []any{"10.1.0.0/16"}}}}))},
		{"with a finalizer", "finalizers are the provider's", create(networkObject("Configuration", cidrs("10.1.0.0/16")),
			func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"mine.example/keep"}) })},
		{"with an owner", "no owner but its gateways", create(networkObject("Configuration", cidrs("10.1.0.0/16")),
			func(u *unstructured.Unstructured) {
				u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}})
			})},
		{"another label", "", patch(`{"metadata": {"labels": {"liqo-autoscaler.io/hub": "edge"}}}`)},
		{"GatewayServer", "", create(server("liqo", map[string]any{"endpoint": map[string]any{"port": int64(51840),
			"serviceType": "NodePort"}}))},
		{"template of its own", template, create(server(consumerNamespace, nil))},
		{"keys of its own", keys, create(server("liqo", map[string]any{"secretRef": map[string]any{"name": "x"}}))},
		{"Service of its own", keys, create(server("liqo", map[string]any{"serviceAnnotations": map[string]any{
			"example.com/internal": "true"}}))},
		{"GatewayClient", "", create(client(clientTemplate, "liqo", map[string]any{"endpoint": map[string]any{
			"addresses": []any{"192.0.2.1"}, "port": int64(51840)}}))},
		{"template of another kind", template, create(client("GatewayClient", "liqo", nil))},
		{"client with a template of its own", template, create(client(clientTemplate, consumerNamespace, nil))},
		{"many addresses", "at most 8 addresses", create(client(clientTemplate, "liqo", map[string]any{
			"endpoint": map[string]any{"addresses": []any{"1", "2", "3", "4", "5", "6", "7", "8", "9"}}}))},
		{"PublicKey", "", create(networkObject("PublicKey", map[string]any{"publicKey": "a2V5"}))},
	})
}

// consumerNetworks checks which networks a consumer may use. If the provider has listed networks with
// --consumer-networks, the consumer may use only these.
func consumerNetworks(t *testing.T, c *cluster, h holder) {
	out, err := c.run(t, tool(t, "LIQO_AUTOSCALER"), nil, "provider-access", "--consumer-id", "rome",
		"--consumer-networks", "10.1.0.0/16,10.70.0.0/16")
	require.NoError(t, err, "%s", out)
	_, manifest, _ := strings.Cut(out, "apiVersion:")
	manifest, _, _ = strings.Cut("apiVersion:"+manifest, "\nAfter the provider")
	c.kubectl(t, []byte(manifest), "apply", "-f", "-")
	create := func(networks ...any) func(context.Context) error {
		return h.createLiqo(liqoKind("networking", "configurations"), consumerNamespace, networkObject("Configuration",
			cidrs(networks...)))
	}
	const allowed = "with --consumer-networks"
	c.judge(t, []attempt{
		{"another network", allowed, create("10.2.0.0/16")},
		{"a part of it", allowed, create("10.1.0.0/24")},
		{"more than it", allowed, create("10.1.0.0/16", "10.2.0.0/16")},
		{"the network", "", create("10.1.0.0/16")},
	})
}
