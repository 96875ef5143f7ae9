package pair

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// offer contains the keys of a Secret's info that setup writes. setup does not change a key whose value is empty here.
type offer struct {
	Provider     string                 `json:"provider"`
	Resources    corev1.ResourceList    `json:"resources,omitempty"`
	LargestNodes []corev1.ResourceList  `json:"largestNodes,omitempty"`
	Price        float64                `json:"price,omitempty"`
	Currency     string                 `json:"currency,omitempty"`
	Network      *discovery.NetworkSpec `json:"network,omitempty"`
}

// measure returns an offer with the amounts that the provider can offer to the consumer now: its free amounts, but at
// most the amounts in the list bound.
func (c *cluster) measure(ctx context.Context, id identity, consumer string, bound corev1.ResourceList) (o offer,
	err error) {
	world, err := agent.Look(ctx, c.kube, c.objects)
	if err != nil {
		return o, fmt.Errorf("%s: read its capacity: %w", c, err)
	}
	config := agent.Config{Provider: id.ID}
	posted := config.Measure(world, agent.OfferConfig{Consumer: consumer, Hub: fleet.DefaultHub, Cap: bound})
	o = offer{Provider: id.ID, Resources: posted.Lendable, LargestNodes: posted.LargestNodes}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if amount := o.Resources[name]; amount.Sign() <= 0 {
			return o, fmt.Errorf("%s: it has no free %s on Ready Nodes without taints, so it cannot offer "+
				"capacity: add a Node, or free one", c, name)
		}
	}
	return o, nil
}

// amounts parses a flag's value such as cpu=16,memory=32Gi.
func amounts(flag, text string) (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, amount, _ := strings.Cut(part, "=")
		quantity, err := strictyaml.Quantity(amount)
		if err != nil || quantity.Sign() <= 0 || name == "" {
			return nil, fmt.Errorf("--%s %s: give positive amounts of resources, such as cpu=16,memory=32Gi", flag, part)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list, nil
}

// network parses a flag's value such as mode=gateway,serviceType=NodePort. It returns nil without an error for "".
func network(text string) (*discovery.NetworkSpec, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // the offer then has no network
	}
	n := &discovery.NetworkSpec{}
	fields := "{" + strings.NewReplacer("=", ": ", ",", ", ").Replace(text) + "}"
	if err := yaml.UnmarshalStrict([]byte(fields), n); err != nil {
		return nil, fmt.Errorf("--network %q: give fields of an offer's network, such as mode=gateway,serviceType=NodePort: "+
			"docs/liqo.md", text)
	}
	return n, nil
}

// unfit returns the reason for which a node of the shape does not fit the offer, or "" if it fits.
func (o offer) unfit(shape corev1.ResourceList) string {
	if lack := firstMissing(o.Resources, shape); lack != "" {
		return "the offer has " + lack
	}
	if len(o.LargestNodes) > 0 && !slices.ContainsFunc(o.LargestNodes, func(node corev1.ResourceList) bool {
		return firstMissing(node, shape) == ""
	}) {
		return "no Node of the provider is large enough"
	}
	return ""
}

// firstMissing returns the first resource of the shape of which the list `has` does not contain enough, or "". If
// `has` contains no ephemeral storage, the storage counts as unlimited, as it does for the worker.
func firstMissing(has, shape corev1.ResourceList) string {
	for _, name := range sorted(shape) {
		amount, ok := has[name]
		if !ok && name == corev1.ResourceEphemeralStorage {
			continue
		}
		if want := shape[name]; amount.Cmp(want) < 0 {
			return fmt.Sprintf("%s %s", name, amount.String())
		}
	}
	return ""
}

// text renders the amounts in the form of a flag's value.
func text(list corev1.ResourceList) string {
	var parts []string
	for _, name := range sorted(list) {
		amount := list[name]
		parts = append(parts, fmt.Sprintf("%s=%s", name, amount.String()))
	}
	return strings.Join(parts, ",")
}

func sorted(list map[corev1.ResourceName]resource.Quantity) (names []corev1.ResourceName) {
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
