package deploy_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// workerForLiqo checks that the worker's account can write the same objects for Liqo as Liqo's own tools. The account
// must not be able to write an object through which Liqo would act for another account.
func workerForLiqo(t *testing.T, c *cluster, e escalation) {
	in := func(group, resource, where, kind, name string, spec map[string]any,
		changes ...func(*unstructured.Unstructured)) func(context.Context) error {
		u := liqoObject(kind, where, name, spec)
		u.SetAPIVersion(group + ".liqo.io/v1beta1")
		u.SetLabels(map[string]string{remoteID: "x"})
		for _, change := range changes {
			change(u)
		}
		return e.createLiqo(liqoKind(group, resource), where, u)
	}
	const here = "liqo-tenant-x"
	authentication := func(kind, resource, name string, spec map[string]any,
		changes ...func(*unstructured.Unstructured)) func(context.Context) error {
		return in("authentication", resource, here, kind, name, spec, changes...)
	}
	network := func(kind, resource string, spec map[string]any,
		changes ...func(*unstructured.Unstructured)) func(context.Context) error {
		return in("networking", resource, here, kind, "new", spec, changes...)
	}
	options := func(name string, spec map[string]any) func(context.Context) error {
		for field, value := range map[string]any{"containerImage": "virtual-kubelet:1", "createNode": true,
			"disableNetworkCheck": false, "metricsEnabled": false, "resources": map[string]any{}} {
			if _, set := spec[field]; !set {
				spec[field] = value
			}
		}
		return in("offloading", "vkoptionstemplates", here, "VkOptionsTemplate", name, spec)
	}
	patch := func(kind apischema.GroupVersionResource, change string) func(context.Context) error {
		return e.patch(kind, here, "held", change)
	}
	skips := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{webhookSkip: "true"}) }
	owned := func(kind string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: kind, Kind: "X", Name: "x", UID: "x"}})
		}
	}
	identity := func(name, kind string) func(context.Context) error {
		return authentication("Identity", "identities", name, map[string]any{"clusterID": "x", "type": kind,
			"authParams": map[string]any{"apiServer": "https://x", "ca": "eA==", "signedCRT": "eA=="}})
	}
	asks := func() map[string]any { return map[string]any{"class": "default", "providerClusterID": "x"} }
	server := func(namespace string, more map[string]any) func(context.Context) error {
		return network("GatewayServer", "gatewayservers", gateway("serverTemplateRef", "WgGatewayServerTemplate", namespace,
			more))
	}
	const control, options1, keys = "only the Identity of a control plane", "keep Liqo's image", "neither its keys"
	const release, other = `{"metadata": {"finalizers": null}}`, "only in namespaces liqo-tenant-*"
	c.judge(t, []attempt{
		{"Identity of a slice", control, identity("resourceslice-a", "ResourceSlice")},
		{"Identity under another name", control, identity("x", "ControlPlane")},
		{"Identity", "", identity("controlplane-x", "ControlPlane")},
		{"slice", "", authentication("ResourceSlice", "resourceslices", "new", asks())},
		{"slice elsewhere", other, in("authentication", "resourceslices", "liqo", "ResourceSlice", "new", asks())},
		{"slice unchecked by Liqo", "keeps to Liqo's webhooks", authentication("ResourceSlice", "resourceslices", "new",
			asks(), skips)},
		{"slice with an owner", "writes no owner", authentication("ResourceSlice", "resourceslices", "new", asks(),
			owned("v1"))},
		{"change a slice", "changes no slice", patch(sliceKind, `{"spec": {"resources": {"cpu": "1"}}}`)},
		{"remind Liqo of a slice", "", patch(sliceKind, `{"metadata": {"annotations": {"a": "b"}}}`)},
		{"release a slice", "", patch(sliceKind, release)},
		{"release a Renew", "", patch(renewKind, release)},
		{"change a Renew", "changes neither a Renew", patch(renewKind, `{"spec": {"consumerClusterID": "y"}}`)},
		{"release a NamespaceMap", "", patch(namespaceMaps, release)},
		{"change a NamespaceMap", "changes neither a Renew", patch(namespaceMaps,
			`{"spec": {"desiredMapping": {"kube-system": "mine"}}}`)},
		{"Configuration", "", network("Configuration", "configurations", cidrs("10.1.0.0/16"))},
		{"the cluster's own addresses", "only the field remote", network("Configuration", "configurations", map[string]any{
			"local": map[string]any{"cidr": map[string]any{"pod": []any{"10.1.0.0/16"}}}})},
		{"GatewayServer", "", server(e.liqo, nil)},
		{"template of its own", "a WireGuard template", server(here, nil)},
		{"keys of its own", keys, server(e.liqo, map[string]any{"secretRef": map[string]any{"name": "x"}})},
		{"Service of its own", keys, server(e.liqo, map[string]any{"serviceAnnotations": map[string]any{"a": "b"}})},
		{"GatewayClient", "", network("GatewayClient", "gatewayclients", gateway("clientTemplateRef",
			"WgGatewayClientTemplate", e.liqo, nil))},
		{"PublicKey", "", network("PublicKey", "publickeies", map[string]any{"publicKey": "a2V5"},
			owned("networking.liqo.io/v1beta1"))},
		{"PublicKey of another owner", "writes no owner", network("PublicKey", "publickeies",
			map[string]any{"publicKey": "a2V5"}, owned("v1"))},
		{"options of virtual kubelets", "", options("liqo-autoscaler-no-network", map[string]any{
			"extraArgs": []any{"--disable-ip-reflection=true"}})},
		{"options that an offer names", "", options("liqo-autoscaler-no-network", map[string]any{
			"nodeExtraAnnotations": map[string]any{"a": "b"}, "extraArgs": []any{"--pod-reflection-workers=3"}})},
		{"another image", options1, options("liqo-autoscaler-no-network", map[string]any{"containerImage": "mine"})},
		{"another argument", options1, options("liqo-autoscaler-no-network", map[string]any{
			"extraArgs": []any{"--foreign-kubeconfig-secret-name=mine"}})},
		{"options of another name", options1, options("mine", map[string]any{})},
	})
}
