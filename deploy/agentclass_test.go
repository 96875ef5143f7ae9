package deploy_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
)

// incoming returns a consumer's slice in the form in which crd-replicator creates it on a provider.
func incoming(consumer, name, class string) *unstructured.Unstructured {
	spec := map[string]any{"consumerClusterID": consumer, "resources": map[string]any{"cpu": "1"}}
	if class != "" {
		spec["class"] = class
	}
	slice := liqoObject("ResourceSlice", "liqo-tenant-"+consumer, name, spec)
	slice.SetLabels(map[string]string{"liqo.io/originID": consumer})
	return slice
}

// deniesDefaultClass checks the policy denyDefaultClass. A consumer for which the agent has an offer gets no new
// slice of the class that Liqo grants automatically. The policy does not affect granted slices, slices of other
// consumers, and slices that this cluster requests from a provider. In this test one slice of munich was granted
// before the policy existed, and rome has no offer.
func (c *cluster) deniesDefaultClass(t *testing.T, objects dynamic.Interface) {
	slices := func(consumer string) dynamic.ResourceInterface {
		return objects.Resource(liqoResource("resourceslices")).Namespace("liqo-tenant-" + consumer)
	}
	create := func(slice *unstructured.Unstructured, in string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := slices(in).Create(ctx, slice, dryCreate)
			return err
		}
	}
	patch := func(name, text string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := slices("munich").Patch(ctx, name, types.MergePatchType, []byte(text), dryPatch)
			return err
		}
	}
	elsewhere := incoming("elsewhere", "stranger", "default")
	elsewhere.SetNamespace("liqo-tenant-munich") // Liqo does not change stranger's slice in this namespace
	elsewhere.SetLabels(nil)
	_, err := slices("munich").Create(t.Context(), elsewhere, metav1.CreateOptions{})
	require.NoError(t, err)
	const says = "request class " + agent.Class
	outgoing := incoming("milan", "outgoing", "default")
	outgoing.SetNamespace("liqo-tenant-munich")
	out, err := c.run(t, tool(t, "HELM"), nil, "upgrade", "liqo-autoscaler-agent", agentChart, "-n", namespace,
		"--reuse-values", "--set", "denyDefaultClass=true")
	require.NoError(t, err, "%s", out)
	c.judge(t, []attempt{
		{"default", says, create(incoming("munich", "new", "default"), "munich")},
		{"no class", says, create(incoming("turin", "new", ""), "turin")},
		{"class changed", says, patch("slice-000", `{"spec": {"class": "default"}}`)},
		{"class removed", says, patch("slice-000", `{"spec": {"class": null}}`)},
		{"more of a granted one", says, patch("before", `{"spec": {"resources": {"cpu": "2"}}}`)},
		{"consumer changed", says, patch("stranger", `{"spec": {"consumerClusterID": "munich"}}`)},
		{"a granted one renewed", "", patch("before", `{"metadata": {"annotations": {"a": "b"}}, "spec": {"csr": "eA=="}}`)},
		{"the agent's class", "", create(incoming("munich", "new", agent.Class), "munich")},
		{"another class", "", create(incoming("munich", "new", "other"), "munich")},
		{"a consumer without an offer", "", create(incoming("rome", "new", "default"), "rome")},
		{"a slice that this cluster requests", "", create(outgoing, "munich")},
	})
	c.eachWasRemoved(t)
}
