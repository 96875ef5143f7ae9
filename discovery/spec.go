package discovery

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// Spec is an offer as people write it: in the offers file and to the discovery server. Which provider it is of is read
// from the cluster itself, and may be declared.
type Spec struct {
	// Name names the offer to people: a DNS-1123 subdomain, unique in its source.
	Name string `json:"name" validate:"required,offername"`
	// Credentials say where the access to the provider lies; exactly one of the two forms.
	Credentials CredentialsSpec `json:"credentials"`
	// Provider declares the id, of a cluster its Liqo cluster id, that the credentials must lead to: whoever else says
	// that it is this provider cannot take its place.
	Provider string `json:"provider,omitempty" validate:"omitempty,dnslabel"`
	// Lendable is the whole amount on offer: cpu, memory and pods at least, because every node has them.
	Lendable corev1.ResourceList `json:"lendable,omitempty" validate:"required_without=Measured,max=64"`
	// Measured, in place of Lendable: the provider's agent publishes what it has, and its labels and prices, as far as
	// this offer does not say them. People write it as "lendable: measured".
	Measured bool `json:"-"`
	// LargestNodes are the provider's largest nodes, by allocatable, of which none has less of everything than another: no
	// node is made that is larger than each of them. Absent means that only Lendable bounds the size of a node.
	LargestNodes []corev1.ResourceList `json:"largestNodes,omitempty" validate:"max=4,dive,max=64"`
	// MaxNodes bounds the number of nodes; 0 or absent means no bound. Write 1 for providers with Liqo up to 1.1.
	MaxNodes int `json:"maxNodes,omitempty" validate:"gte=0,lte=1000"`
	// Labels are what node groups select offers by: Kubernetes label syntax.
	Labels map[string]string `json:"labels,omitempty" validate:"max=64"`
	// Price is per node and hour; 0 or absent leaves it to Prices.
	Price float64 `json:"price,omitempty" validate:"gte=0"`
	// Prices are per hour and CPU, GiB of memory, ephemeral storage or huge pages, or unit of any other resource; what
	// they do not name costs nothing.
	Prices map[corev1.ResourceName]float64 `json:"prices,omitempty" validate:"max=64"`
	// Currency is that of Price and Prices, an ISO 4217 code; absent means that of the consumer's node groups. In another
	// one the offer is not used, because its price compares with no other.
	Currency string `json:"currency,omitempty" validate:"omitempty,iso4217"`
	// LatencyMilliseconds is the round trip between the clusters, for groups that weigh it; 0 or absent means unknown.
	LatencyMilliseconds int `json:"latencyMilliseconds,omitempty" validate:"gte=0,lte=60000"`
	// LingerSeconds is how long an unused peering is kept; absent means 60.
	LingerSeconds *int64 `json:"lingerSeconds,omitempty" validate:"omitempty,gte=0,lte=604800"`
	// Unpeer is linger (default) or never.
	Unpeer fleet.UnpeerPolicy `json:"unpeer,omitempty" validate:"omitempty,oneof=linger never"`
	// Class is that of the ResourceSlices to ask for: liqo-autoscaler where the agent grants them. Absent means Liqo's.
	Class string `json:"class,omitempty" validate:"omitempty,dnslabel"`
	// Network is how traffic between the clusters comes about; absent means gateways with their defaults.
	Network *NetworkSpec `json:"network,omitempty"`
	// VirtualKubelet names the VkOptionsTemplate, in the namespace of the consumer's Liqo, with which the nodes' virtual
	// kubelets run; absent means Liqo's own. It is the consumer's alone: no posted offer may name one.
	VirtualKubelet string `json:"virtualKubelet,omitempty" validate:"omitempty,offername"`
	// Expires is when the offer ends, RFC 3339; absent means never.
	Expires *time.Time `json:"expires,omitempty"`
}

// CredentialsSpec says where the access to a provider lies.
type CredentialsSpec struct {
	// KubeconfigFile is a path, relative to the offers file.
	KubeconfigFile string `json:"kubeconfigFile,omitempty" validate:"omitempty,max=1024,oneline"`
	// SecretRef names one key of a Secret in the consumer cluster.
	SecretRef *SecretRefSpec `json:"secretRef,omitempty"`
}

// SecretRefSpec names one key of a Secret in the consumer cluster.
type SecretRefSpec struct {
	Namespace string `json:"namespace" validate:"required,dnslabel"`
	Name      string `json:"name" validate:"required,offername"`
	// Key defaults to "kubeconfig".
	Key string `json:"key,omitempty" validate:"omitempty,secretkey"`
}

// DefaultKey is the key of a Secret that holds a kubeconfig when nothing else is said.
const DefaultKey = "kubeconfig"

// Document is the offers file.
type Document struct {
	Offers []Spec `json:"offers" validate:"max=1000,dive"`
}

// Parse reads an offers document, YAML or JSON. The error lists everything that is wrong, each with the path of its
// field, such as "offers[1].lendable.cpu". Unknown keys are refused.
func Parse(document []byte) (Document, error) {
	var doc Document
	tree, faults, err := strictyaml.Read(document)
	if err != nil || tree == nil {
		_, _, err = strictyaml.Unmarshal(document, &doc)
		return Document{}, err // nothing was decoded: that everything is missing as well would only distract
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

// Faults are what is wrong with an offer that was made by a program, by path.
func (s *Spec) Faults() strictyaml.Faults { return s.check().Locate(nil) }

// Check is Faults as an error.
func (s *Spec) Check() error { return s.Faults().Err() }

// Offer is the offer as the domain knows it, its provider and epoch still unknown.
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
