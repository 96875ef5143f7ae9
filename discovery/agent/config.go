package agent

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// Config is the content of the agent's configuration file.
type Config struct {
	// Provider is this cluster's Liqo cluster id. The discovery server may restrict the agent's token to this id.
	// Consumers compare the id with the id that the cluster itself reports to them.
	Provider string `json:"provider"`
	// Reserve is the capacity that is excluded from all offers.
	Reserve corev1.ResourceList `json:"reserve,omitempty"`
	// GrowsTo is the total capacity, by resource, to which this cluster's own autoscaler may grow the cluster for
	// consumers' pods. GrowsNode contains the allocatable amounts of a node that the autoscaler adds.
	GrowsTo   corev1.ResourceList `json:"growsTo,omitempty"`
	GrowsNode corev1.ResourceList `json:"growsNode,omitempty"`
	// NodeTolerations are the tolerations of the consumers' pods. Nodes with other taints, such as control plane
	// nodes, are not offered.
	NodeTolerations []corev1.Toleration `json:"nodeTolerations,omitempty"`
	// Shares limits the part of the capacity that each consumer may hold: no limit (default), equal parts, or parts
	// by weights.
	Shares Shares `json:"shares,omitempty"`
	// NodeLabels are the labels for the virtual nodes of the slices that the agent grants.
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// StorageClasses, IngressClasses and LoadBalancerClasses are classes of this cluster. Liqo offers them to the pods,
	// Ingresses and Services of a slice that the agent grants. The first class of each list is the default.
	StorageClasses      []string `json:"storageClasses,omitempty"`
	IngressClasses      []string `json:"ingressClasses,omitempty"`
	LoadBalancerClasses []string `json:"loadBalancerClasses,omitempty"`
	// TTLSeconds is the time after which an offer expires if it is not renewed; default 60. The agent renews it three
	// times within this time.
	TTLSeconds int `json:"ttlSeconds,omitempty"`
	// Offers has one entry for each consumer.
	Offers []OfferConfig `json:"offers"`
}

// OfferConfig is an offer to one consumer. It has the fields of Spec, except the fields that the agent measures.
type OfferConfig struct {
	// Consumer is the consumer's Liqo cluster id.
	Consumer string `json:"consumer"`
	// Hub is the consumer's hub of liqo-autoscaler; default "default".
	Hub string `json:"hub,omitempty"`
	// Cap bounds the offered amounts, by resource.
	Cap corev1.ResourceList `json:"cap,omitempty"`
	// AllowAggregate permits slices that are larger than any single node of this cluster. It is for consumers with
	// many small pods.
	AllowAggregate bool `json:"allowAggregate,omitempty"`
	// Weight is the consumer's weight if Shares is "weights"; default 1. If a consumer has several offers, the weight
	// in the first one applies.
	Weight int `json:"weight,omitempty"`
	discovery.Spec
}

// These constants bound the values in the config.
const (
	defaultTTL = 60
	minTTL     = 10
	maxTTL     = 24 * 60 * 60
	maxOffers  = 100
	maxWeight  = 1000
)

// TTL returns the time after which an offer expires if it is not renewed.
func (c Config) TTL() time.Duration { return time.Duration(c.TTLSeconds) * time.Second }

// Parse reads the content of the file, which is YAML or JSON, and applies defaults. The error lists all faults, each
// with its path.
func Parse(document []byte) (Config, error) {
	c := Config{TTLSeconds: defaultTTL}
	_, faults, err := strictyaml.Unmarshal(document, &c)
	if err != nil {
		return Config{}, err
	}
	if err := faults.And(c.check()).Locate(document).Err(); err != nil {
		return Config{}, err
	}
	for i := range c.Offers {
		c.Offers[i].Hub = cmp.Or(c.Offers[i].Hub, fleet.DefaultHub)
	}
	return c, nil
}

func (c *Config) checkGrowth(faults *strictyaml.Faults) {
	negative(faults, "growsTo", c.GrowsTo)
	negative(faults, "growsNode", c.GrowsNode)
	switch {
	case len(c.GrowsTo) > 0 && len(c.GrowsNode) == 0:
		faults.Add("growsNode", "is missing: give the allocatable amounts of an added node")
	case len(c.GrowsTo) == 0 && len(c.GrowsNode) > 0:
		faults.Add("growsTo", "is missing: give the total to which nodes are added")
	}
}

func (c *Config) check() (faults strictyaml.Faults) {
	if !fleet.ValidProviderID(c.Provider) {
		faults.Add("provider", "%q is not a Liqo cluster id: give the id of this cluster", c.Provider)
	}
	if c.TTLSeconds < minTTL || c.TTLSeconds > maxTTL {
		faults.Add("ttlSeconds", "is %d: give %d to %d", c.TTLSeconds, minTTL, maxTTL)
	}
	switch {
	case len(c.Offers) == 0:
		faults.Add("offers", "is missing: name at least one consumer")
	case len(c.Offers) > maxOffers:
		faults.Add("offers", "is too long: give at most %d", maxOffers)
	}
	negative(&faults, "reserve", c.Reserve)
	c.checkGrowth(&faults)
	if c.Shares != SharesNone && c.Shares != SharesEqual && c.Shares != SharesWeights {
		faults.Add("shares", "%q is not known: use equal or weights, or remove it", c.Shares)
	}
	for key, val := range c.NodeLabels {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(val)) > 0 {
			faults.Add(strictyaml.Join("nodeLabels", key), "%q is not a valid label: see Kubernetes' label syntax", key+"="+val)
		}
	}
	return append(faults, c.checkOffers()...)
}

func (c *Config) checkOffers() (faults strictyaml.Faults) {
	names := map[string]int{}
	for i, offer := range c.Offers {
		path := fmt.Sprintf("offers[%d].", i)
		faults = append(faults, offer.check(path, c.Provider)...)
		if first, ok := names[offer.Name]; ok && offer.Name != "" {
			faults.Add(path+"name", "%q is also the name of offers[%d]", offer.Name, first)
		}
		names[offer.Name] = i
		if offer.Weight != 0 && c.Shares != SharesWeights {
			faults.Add(path+"weight", "needs shares: weights")
		}
	}
	return faults
}

func (o OfferConfig) check(path, provider string) (faults strictyaml.Faults) {
	switch {
	case !fleet.ValidProviderID(o.Consumer):
		faults.Add(path+"consumer", "%q is not a Liqo cluster id: give the id of the consumer", o.Consumer)
	case o.Consumer == provider:
		faults.Add(path+"consumer", "is this cluster itself")
	}
	if o.Lendable != nil {
		faults.Add(path+"lendable", "is measured: remove it, and use cap and reserve to limit the offer")
	}
	if o.LargestNodes != nil {
		faults.Add(path+"largestNodes", "are measured: remove them, or set allowAggregate to offer larger nodes")
	}
	if o.Expires != nil {
		faults.Add(path+"expires", "must not be set: an offer expires ttlSeconds after the agent's last renewal")
	}
	if o.Class != "" {
		faults.Add(path+"class", "must not be set: with --grant-slices the agent sets its own class")
	}
	if o.Weight < 0 || o.Weight > maxWeight {
		faults.Add(path+"weight", "is %d: give 1 to %d", o.Weight, maxWeight)
	}
	if o.Provider != "" {
		faults.Add(path+"provider", "must not be set here: set provider once, at the top")
	}
	negative(&faults, path+"cap", o.Cap)
	posted := o.Post(provider, minimumAmounts())
	for _, f := range posted.Faults() {
		if f.Path != "provider" {
			faults.Add(path+f.Path, "%s", f.Message)
		}
	}
	return faults
}

// minimumAmounts returns the smallest valid amounts of an offer.
func minimumAmounts() corev1.ResourceList {
	none := resource.Quantity{Format: resource.DecimalSI}
	return corev1.ResourceList{corev1.ResourceCPU: none, corev1.ResourceMemory: none, corev1.ResourcePods: none}
}

func negative(faults *strictyaml.Faults, path string, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		if amount.Sign() < 0 {
			faults.Add(strictyaml.Join(path, string(name)), "must not be negative, is %s", amount.String())
		}
	}
}

// Measure returns the offer with the amounts that the consumer's hub may hold in total, including the present holds
// of this hub. The amounts are the free capacity (World.Free), but at most the offer's cap and the consumer's share.
// Grants to the consumer that are not holds of this hub reduce the cap and the share.
func (c Config) Measure(w World, o OfferConfig) api.Posted {
	to := Holder{Consumer: o.Consumer, Hub: o.Hub}
	free, most := w.Free(to, c.Reserve), c.bound(w, o)
	for _, s := range w.Slices {
		if s.holder() == o.Consumer && !s.heldBy(to) {
			subtract(most, s.Granted())
		}
	}
	for name, amount := range most {
		if free.Name(name, amount.Format).Cmp(amount) > 0 {
			free[name] = amount
		}
	}
	posted := o.Post(c.Provider, free)
	if !o.AllowAggregate {
		posted.LargestNodes = w.largestNodes(posted.Lendable)
	}
	if architecture := w.architecture(); architecture != "" && posted.Labels[corev1.LabelArchStable] == "" {
		posted.Labels = maps.Clone(posted.Labels)
		if posted.Labels == nil {
			posted.Labels = map[string]string{}
		}
		posted.Labels[corev1.LabelArchStable] = architecture
	}
	return posted
}

// Post returns the offer with the free amounts. The offer always contains cpu, memory and pods, even if the amount is
// 0. It contains any other resource only if a pod can request the resource and an amount of the resource is free.
func (o OfferConfig) Post(provider string, free corev1.ResourceList) api.Posted {
	spec := o.Spec
	spec.Provider = provider
	spec.Lendable = minimumAmounts()
	for name, amount := range free {
		if amount.Sign() > 0 && (has(spec.Lendable, name) || discovery.Requestable(name)) {
			spec.Lendable[name] = amount.DeepCopy()
		}
	}
	return api.Posted{Spec: spec, Contract: discovery.Contract{Version: discovery.ContractVersion}, Consumer: o.Consumer}
}
