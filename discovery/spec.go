package discovery

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// Spec is an offer as administrators write it into the offers file, or send it to the discovery server. Resolve reads
// the provider id from the cluster, but the offer may also declare the id.
type Spec struct {
	// Name identifies the offer to people. It is a DNS-1123 subdomain, and is unique in its source.
	Name string `json:"name" validate:"required,offername"`
	// Credentials refers to the kubeconfig for the provider, in exactly one of two ways.
	Credentials CredentialsSpec `json:"credentials"`
	// Provider declares the Liqo cluster id of the cluster to which the credentials must lead. An offer that declares
	// the id has precedence over offers of other clusters that report the same id.
	Provider string `json:"provider,omitempty" validate:"omitempty,dnslabel"`
	// Lendable contains the total amounts that are offered. It must contain at least cpu, memory and pods, because
	// every node needs them.
	Lendable corev1.ResourceList `json:"lendable,omitempty" validate:"required_without=Measured,max=64"`
	// Measured means that Lendable is read from the provider's agent, which publishes it. If this offer has no labels
	// or no prices, the labels or prices that the agent publishes are used too. In YAML it is written as "lendable:
	// measured".
	Measured bool `json:"-"`
	// LargestNodes are the allocatable amounts of the provider's largest nodes. A node on this offer must fit into at
	// least one entry. If LargestNodes is absent, only Lendable bounds the size of a node. The agent omits a node if
	// another node is at least as large in every resource.
	LargestNodes []corev1.ResourceList `json:"largestNodes,omitempty" validate:"max=4,dive,max=64"`
	// MaxNodes bounds the number of nodes on this offer; 0 or absent means no bound. It should be 1 for providers
	// with Liqo up to 1.1.
	MaxNodes int `json:"maxNodes,omitempty" validate:"gte=0,lte=1000"`
	// Labels are the labels by which node groups select offers. They have the syntax of Kubernetes labels.
	Labels map[string]string `json:"labels,omitempty" validate:"max=64"`
	// Price is the price per node and hour. If it is 0 or absent, Prices applies.
	Price float64 `json:"price,omitempty" validate:"gte=0"`
	// Prices are prices per hour, by resource. Each price is for one CPU, for one GiB of memory, ephemeral storage or
	// huge pages, or for one unit of any other resource. A resource without a price costs nothing.
	Prices map[corev1.ResourceName]float64 `json:"prices,omitempty" validate:"max=64"`
	// Currency is the ISO 4217 code of the currency of Price and Prices; absent means the currency of the consumer's
	// node groups. An offer in another currency is not used, because its price cannot be compared.
	Currency string `json:"currency,omitempty" validate:"omitempty,iso4217"`
	// LatencyMilliseconds is the round-trip time between the clusters. Groups may consider it when they select
	// offers. 0 or absent means unknown.
	LatencyMilliseconds int `json:"latencyMilliseconds,omitempty" validate:"gte=0,lte=60000"`
	// LingerSeconds is the time for which a peering that is no longer used is kept; absent means 60.
	LingerSeconds *int64 `json:"lingerSeconds,omitempty" validate:"omitempty,gte=0,lte=604800"`
	// Unpeer is linger (default) or never.
	Unpeer fleet.UnpeerPolicy `json:"unpeer,omitempty" validate:"omitempty,oneof=linger never"`
	// Class is the class of the ResourceSlices that the consumer creates. It must be liqo-autoscaler if the
	// provider's agent grants them. Absent means Liqo's default class.
	Class string `json:"class,omitempty" validate:"omitempty,dnslabel"`
	// Network configures the traffic between the clusters; absent means gateways with their defaults.
	Network *NetworkSpec `json:"network,omitempty"`
	// VirtualKubelet is the name of the VkOptionsTemplate for the virtual kubelets of the nodes. The
	// VkOptionsTemplate is in Liqo's namespace of the consumer cluster. Absent means Liqo's default. Only the
	// consumer may set VirtualKubelet, so an offer on the discovery server must not contain it.
	VirtualKubelet string `json:"virtualKubelet,omitempty" validate:"omitempty,offername"`
	// Expires is the time at which the offer ends, in RFC 3339; absent means never.
	Expires *time.Time `json:"expires,omitempty"`
}

// CredentialsSpec refers to the kubeconfig for a provider. Exactly one field must be set.
type CredentialsSpec struct {
	// KubeconfigFile is the path of the kubeconfig, relative to the offers file.
	KubeconfigFile string `json:"kubeconfigFile,omitempty" validate:"omitempty,max=1024,oneline"`
	// SecretRef refers to one key of a Secret in the consumer cluster.
	SecretRef *SecretRefSpec `json:"secretRef,omitempty"`
}

// SecretRefSpec refers to one key of a Secret in the consumer cluster.
type SecretRefSpec struct {
	Namespace string `json:"namespace" validate:"required,dnslabel"`
	Name      string `json:"name" validate:"required,offername"`
	// Key is the key in the Secret; default "kubeconfig".
	Key string `json:"key,omitempty" validate:"omitempty,secretkey"`
}

// DefaultKey is the default key of the kubeconfig in a Secret.
const DefaultKey = "kubeconfig"

// Document is the content of the offers file.
type Document struct {
	Offers []Spec `json:"offers" validate:"max=1000,dive"`
}

// Parse parses a document with offers, in YAML or JSON. The error lists all faults, each with the path of the field,
// such as "offers[1].lendable.cpu". Unknown keys are faults.
func Parse(document []byte) (Document, error) {
	var doc Document
	tree, faults, err := strictyaml.Read(document)
	if err != nil || tree == nil {
		_, _, err = strictyaml.Unmarshal(document, &doc)
		return Document{}, err // nothing was decoded, and a list of missing fields would only distract
	}
	if err := strictyaml.OtherFile(tree, "offers"); err != nil {
		return Document{}, err
	}
	var measured []int
	offers, _ := tree["offers"].([]any)
	for i, offer := range offers {
		if o, ok := offer.(map[string]any); ok && o["lendable"] == "measured" {
			delete(o, "lendable")
			measured = append(measured, i)
		}
	}
	faults = faults.And(strictyaml.Decode(tree, &doc))
	for _, i := range measured {
		doc.Offers[i].Measured = true
	}
	if err := faults.And(doc.check()).Locate(document).Err(); err != nil {
		return Document{}, err
	}
	return doc, nil
}

// Faults returns the faults of an offer, by path. It is for an offer that was not parsed from a document, so that the
// faults have no line numbers.
func (s *Spec) Faults() strictyaml.Faults { return s.check().Locate(nil) }

// Check returns the result of Faults as an error.
func (s *Spec) Check() error { return s.Faults().Err() }

// Offer returns the offer in the form of package fleet. The provider and the epoch are not set.
func (s Spec) Offer() fleet.Offer {
	o := fleet.Offer{
		Name:          s.Name,
		Provider:      s.Provider,
		Credentials:   fleet.Credentials{KubeconfigFile: s.Credentials.KubeconfigFile},
		Lendable:      s.Lendable.DeepCopy(),
		LargestNodes:  s.LargestNodes,
		MaxNodes:      s.MaxNodes,
		Labels:        s.Labels,
		Price:         s.Price,
		Prices:        maps.Clone(s.Prices),
		Currency:      s.Currency,
		LingerSeconds: s.LingerSeconds,
		Unpeer:        s.Unpeer,
		Class:         s.Class,
		Network:       s.network(),
		Expires:       s.Expires,

		LatencyMilliseconds: s.LatencyMilliseconds, Measured: s.Measured,
	}
	if ref := s.Credentials.SecretRef; ref != nil {
		o.Credentials.SecretRef = &fleet.SecretRef{Namespace: ref.Namespace, Name: ref.Name, Key: ref.Key}
		if ref.Key == "" {
			o.Credentials.SecretRef.Key = DefaultKey
		}
	}
	return o
}
