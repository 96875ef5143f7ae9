package secrets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

// KeyInfo is the key in a Secret under which the offer is stored.
const KeyInfo = "info"

// info is the value of the Secret's key "info": an offer.
type info struct {
	// Name is permitted because some Secrets contain it. It is ignored, because the Secret's name is the offer's
	// name.
	Name          string                          `json:"name,omitempty"`
	Resources     corev1.ResourceList             `json:"resources"`
	LargestNodes  []corev1.ResourceList           `json:"largestNodes,omitempty"`
	Labels        map[string]text                 `json:"labels,omitempty"`
	HasNat        *bool                           `json:"hasNat,omitempty"`
	MaxNodes      int                             `json:"maxNodes,omitempty"`
	Price         float64                         `json:"price,omitempty"`
	Prices        map[corev1.ResourceName]float64 `json:"prices,omitempty"`
	Currency      string                          `json:"currency,omitempty"`
	Latency       int                             `json:"latencyMilliseconds,omitempty"`
	LingerSeconds *int64                          `json:"lingerSeconds,omitempty"`
	Unpeer        fleet.UnpeerPolicy              `json:"unpeer,omitempty"`
	Class         string                          `json:"class,omitempty"`
	Network       *discovery.NetworkSpec          `json:"network,omitempty"`
	Kubelet       string                          `json:"virtualKubelet,omitempty"`
	Expires       *time.Time                      `json:"expires,omitempty"`
	// Provider declares the cluster id to which the kubeconfig must lead.
	Provider string `json:"provider,omitempty"`
}

// text is a label value. In the document it may also be a boolean or a number, such as true or 39, because quotes are
// easy to forget in YAML.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		return json.Unmarshal(raw, (*string)(t))
	}
	if bytes.HasPrefix(raw, []byte("{")) || bytes.HasPrefix(raw, []byte("[")) {
		return errors.New("must be a string")
	}
	*t = text(raw)
	return nil
}

// parse reads the offer in a Secret. The error lists all faults by path, and does not quote the kubeconfig.
func parse(secret *corev1.Secret) (discovery.Spec, error) {
	faults := checkKubeconfig(secret.Data[discovery.DefaultKey])
	raw, ok := secret.Data[KeyInfo]
	if !ok {
		faults.Add(KeyInfo, "is missing")
		return discovery.Spec{}, faults
	}
	var in info
	_, wrong, err := strictyaml.Unmarshal(raw, &in)
	if err == nil {
		err = wrong.Locate(raw).Err()
	}
	if errors.As(err, &wrong) {
		return discovery.Spec{}, append(faults, under(KeyInfo, wrong)...)
	}
	spec := discovery.Spec{
		Name: secret.Name,
		Credentials: discovery.CredentialsSpec{SecretRef: &discovery.SecretRefSpec{
			Namespace: secret.Namespace, Name: secret.Name, Key: discovery.DefaultKey,
		}},
		Lendable: in.Resources, LargestNodes: in.LargestNodes, Labels: in.labels(), MaxNodes: in.MaxNodes,
		Price: in.Price, Prices: in.Prices,
		Currency: in.Currency, LingerSeconds: in.LingerSeconds, Unpeer: in.Unpeer, Expires: in.Expires, Provider: in.Provider,
		LatencyMilliseconds: in.Latency, Class: in.Class, Network: in.network(),
		VirtualKubelet: in.Kubelet,
	}
	return spec, append(faults, under(KeyInfo, spec.Faults())...).Err()
}

// Check validates the data of a Secret: the credentials and, if KeyInfo is present, the offer. The error lists all
// faults by path, and does not quote the kubeconfig.
func Check(namespace, name string, data map[string][]byte) error {
	if _, offers := data[KeyInfo]; offers {
		_, err := parse(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data})
		return err
	}
	return checkKubeconfig(data[discovery.DefaultKey]).Err()
}

func checkKubeconfig(kubeconfig []byte) (faults strictyaml.Faults) {
	if len(bytes.TrimSpace(kubeconfig)) == 0 {
		faults.Add("kubeconfig", "is missing")
	} else if err := strictyaml.CheckAliases(kubeconfig); err != nil {
		faults.Add("kubeconfig", "is not a kubeconfig: %v", err)
	} else if config, err := clientcmd.Load(kubeconfig); err != nil { // the error may quote the content
		faults.Add("kubeconfig", "is not a kubeconfig")
	} else if len(config.Clusters) == 0 {
		faults.Add("kubeconfig", "names no cluster")
	}
	return faults
}

func (in info) labels() map[string]string {
	labels := make(map[string]string, len(in.Labels)+1)
	if in.HasNat != nil {
		labels["hasNat"] = strconv.FormatBool(*in.HasNat)
	}
	for key, value := range in.Labels {
		labels[key] = string(value)
	}
	return labels
}

// network returns the network of the offer. If the provider is behind a NAT, the consumer cannot connect to the
// provider. In this case the server gateway is by default in the consumer cluster.
func (in info) network() *discovery.NetworkSpec {
	n := in.Network
	if in.HasNat == nil || !*in.HasNat {
		return n
	}
	n = cmp.Or(n, &discovery.NetworkSpec{})
	if n.ServerLocation == "" && (n.Mode == "" || n.Mode == fleet.NetworkGateway) {
		n.ServerLocation = "consumer"
	}
	return n
}

// under changes the paths of faults in an offer to paths in the Secret. For example, the path lendable becomes
// info.resources.
func under(key string, faults strictyaml.Faults) strictyaml.Faults {
	for i, f := range faults {
		if rest, ok := strings.CutPrefix(f.Path, "lendable"); ok {
			f.Path = "resources" + rest
		}
		faults[i].Path = key
		if f.Path != "" {
			faults[i].Path = key + "." + f.Path
		}
	}
	return faults
}
