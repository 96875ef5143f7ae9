package discovery

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
)

var rules = strictyaml.NewRules(map[string]strictyaml.Check{
	"offername": {Valid: isValid(validation.IsDNS1123Subdomain),
		Fault: "%q is not a DNS-1123 subdomain: use lower case letters, digits, '-' and '.', at most 253"},
	"dnslabel": {Valid: isValid(validation.IsDNS1123Label),
		Fault: "%q is not a DNS-1123 label: use lower case letters, digits and '-', at most 63"},
	"secretkey": {Valid: isValid(validation.IsConfigMapKey),
		Fault: "%q is not a key of a Secret: use letters, digits, '-', '_' and '.'"},
	// A user may paste a kubeconfig where its path is expected. Such a text must not be opened as a file, and must
	// not be quoted in an error.
	"oneline": {Valid: func(s string) bool { return !strings.ContainsAny(s, "\n\r\x00") },
		Fault: "must be a path on one line: write the kubeconfig to a file and give its path"},
	"ipaddress": {Valid: isIP, Fault: "%q is not an IP address"},
	"address":   {Valid: isAddress, Fault: "%q is neither an IP address nor a DNS name"},
}, nil)

func isValid(faults func(string) []string) func(string) bool {
	return func(s string) bool { return len(faults(s)) == 0 }
}

func (d *Document) check() strictyaml.Faults {
	var faults strictyaml.Faults
	first := map[string]int{}
	for i, spec := range d.Offers {
		path := fmt.Sprintf("offers[%d]", i)
		faults = append(faults, spec.checkBeyondTags(path+".")...)
		if at, ok := first[spec.Name]; ok && spec.Name != "" {
			faults.Add(path+".name", "%q is also the name of offers[%d]", spec.Name, at)
		} else {
			first[spec.Name] = i
		}
	}
	return rules.Check(d).And(faults)
}

func (s *Spec) check() strictyaml.Faults { return rules.Check(s).And(s.checkBeyondTags("")) }

// checkBeyondTags returns the faults that struct tags cannot find. The paths in the faults begin with `at`.
func (s *Spec) checkBeyondTags(at string) (faults strictyaml.Faults) {
	if c := s.Credentials; (c.KubeconfigFile == "") == (c.SecretRef == nil) {
		faults.Add(at+"credentials", "give exactly one of kubeconfigFile and secretRef")
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		if _, ok := s.Lendable[name]; !ok && !s.Measured {
			faults.Add(strictyaml.Join(at+"lendable", string(name)), "is missing; every node has %s", name)
		}
	}
	faults = append(faults, checkAmounts(at+"lendable", s.Lendable)...)
	for n, node := range s.LargestNodes {
		faults = append(faults, checkAmounts(fmt.Sprintf("%slargestNodes[%d]", at, n), node)...)
	}
	for key, val := range s.Labels {
		path := strictyaml.Join(at+"labels", key)
		if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
			faults.Add(path, "the key: %s", wrong[0])
		} else if wrong := validation.IsValidLabelValue(val); len(wrong) > 0 {
			faults.Add(path, "the value %q: %s", val, wrong[0])
		}
	}
	return append(append(faults, s.checkPrices(at)...), s.Network.check(at)...)
}

func checkAmounts(at string, amounts corev1.ResourceList) (faults strictyaml.Faults) {
	for name, amount := range amounts {
		path := strictyaml.Join(at, string(name))
		if wrong := resourceName(string(name)); wrong != "" {
			faults.Add(path, "%s", wrong)
		} else if amount.Cmp(resource.Quantity{}) < 0 {
			faults.Add(path, "must not be negative, is %s", amount.String())
		}
	}
	return faults
}

func (s *Spec) checkPrices(at string) (faults strictyaml.Faults) {
	for name, price := range s.Prices {
		path := strictyaml.Join(at+"prices", string(name))
		if wrong := resourceName(string(name)); wrong != "" {
			faults.Add(path, "%s", wrong)
		} else if math.IsNaN(price) || price < 0 || price > choice.MaxUnitPrice {
			faults.Add(path, "is %g: give 0 to %d", price, int(choice.MaxUnitPrice))
		}
	}
	return faults
}

// Requestable reports whether a pod can request the resource. An offer may contain only such resources.
func Requestable(name corev1.ResourceName) bool { return resourceName(string(name)) == "" }

// resourceName returns the reason for which no pod can request a resource with this name. It returns "" if a pod can.
// A common mistake is "gpu" without a domain.
func resourceName(name string) string {
	if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
		return "not a resource name: " + strings.Join(wrong, "; ")
	}
	switch {
	case strings.Contains(name, "/"), strings.HasPrefix(name, corev1.ResourceHugePagesPrefix):
		return ""
	case slices.Contains([]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods,
		corev1.ResourceEphemeralStorage}, corev1.ResourceName(name)):
		return ""
	}
	return "not a resource of Kubernetes; write cpu, memory, pods, ephemeral-storage, hugepages-<size>, or a full " +
		"name such as nvidia.com/gpu"
}
