package discovery

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-playground/validator/v10"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/internal/strict"
)

// says is the tag of faults found by the struct-level rules below: their parameter is the sentence.
const says = "says"

var rules = newRules()

func newRules() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	for tag, wrong := range map[string]func(string) []string{
		"offername": validation.IsDNS1123Subdomain,
		"dnslabel":  validation.IsDNS1123Label,
		"secretkey": validation.IsConfigMapKey,
		"oneline":   oneLine,
	} {
		check := func(fl validator.FieldLevel) bool { return len(wrong(fl.Field().String())) == 0 }
		if err := v.RegisterValidation(tag, check); err != nil {
			panic(err) // a tag of ours is empty or reserved: a defect of this file
		}
	}
	v.RegisterStructValidation(specRules, Spec{})
	v.RegisterStructValidation(credentialsRules, CredentialsSpec{})
	v.RegisterStructValidation(documentRules, Document{})
	return v
}

// oneLine keeps a kubeconfig pasted where its path belongs from being opened, and so from being quoted in an error.
func oneLine(s string) []string {
	if strings.ContainsAny(s, "\n\r\x00") {
		return []string{"more than one line"}
	}
	return nil
}

func specRules(sl validator.StructLevel) {
	spec := sl.Current().Interface().(Spec)
	say := func(path, format string, args ...any) {
		sl.ReportError(nil, path, "", says, fmt.Sprintf(format, args...))
	}
	if spec.Lendable != nil {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
			if _, ok := spec.Lendable[name]; !ok {
				say(strict.Join("lendable", string(name)), "is missing; every node has %s", name)
			}
		}
	}
	for name, amount := range spec.Lendable {
		path := strict.Join("lendable", string(name))
		if amount.Cmp(resource.Quantity{}) < 0 {
			say(path, "must not be negative, is %s", amount.String())
		}
		if wrong := resourceName(string(name)); wrong != "" {
			say(path, "%s", wrong)
		}
	}
	for key, val := range spec.Labels {
		for _, wrong := range validation.IsQualifiedName(key) {
			say(strict.Join("labels", key), "the key: %s", wrong)
		}
		for _, wrong := range validation.IsValidLabelValue(val) {
			say(strict.Join("labels", key), "the value %q: %s", val, wrong)
		}
	}
}

// resourceName refuses what no pod can ask for. "gpu" without a domain is the usual mistake.
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
	return "not a resource Kubernetes knows; write cpu, memory, pods, ephemeral-storage, hugepages-<size>, or a full " +
		"name such as nvidia.com/gpu"
}

func credentialsRules(sl validator.StructLevel) {
	c := sl.Current().Interface().(CredentialsSpec)
	if (c.KubeconfigFile == "") == (c.SecretRef == nil) {
		sl.ReportError(nil, "", "", says, "give exactly one of kubeconfigFile and secretRef")
	}
}

func documentRules(sl validator.StructLevel) {
	first := map[string]int{}
	for i, spec := range sl.Current().Interface().(Document).Offers {
		if at, ok := first[spec.Name]; ok && spec.Name != "" {
			sl.ReportError(nil, fmt.Sprintf("offers[%d].name", i), "", says, fmt.Sprintf("%q is also the name of offers[%d]", spec.Name, at))
			continue
		}
		first[spec.Name] = i
	}
}

func validate(target any) strict.Faults {
	err := rules.Struct(target)
	if err == nil {
		return nil
	}
	found, ok := err.(validator.ValidationErrors) //nolint:errorlint // the validator returns it bare
	if !ok {
		return strict.Faults{{Message: err.Error()}}
	}
	var faults strict.Faults
	for _, f := range found {
		_, path, _ := strings.Cut(f.Namespace(), ".")
		faults.Add(strings.TrimSuffix(path, "."), "%s", sentence(f))
	}
	return faults
}

func sentence(f validator.FieldError) string {
	switch f.Tag() {
	case says:
		return f.Param()
	case "required":
		return "is missing"
	case "gte":
		return "must be at least " + f.Param()
	case "lte":
		return "must be at most " + f.Param()
	case "oneof":
		return "must be one of: " + strings.ReplaceAll(f.Param(), " ", ", ")
	case "offername":
		return fmt.Sprintf("%q is not a DNS-1123 subdomain: lower case letters, digits, '-' and '.', at most 253", f.Value())
	case "dnslabel":
		return fmt.Sprintf("%q is not a DNS-1123 label: lower case letters, digits and '-', at most 63", f.Value())
	case "secretkey":
		return fmt.Sprintf("%q is not a key of a Secret: letters, digits, '-', '_' and '.'", f.Value())
	case "oneline":
		return "must be a path on one line; write the kubeconfig to a file and name that"
	case "max":
		return "is too long, at most " + f.Param()
	default:
		return "breaks the rule " + f.Tag()
	}
}

// dedupe sorts faults by path and keeps one per path: the decoder's comes first and says more than "is missing" about
// the zero value it left behind.
func dedupe(faults strict.Faults) strict.Faults {
	seen := map[string]bool{}
	var kept strict.Faults
	for _, f := range faults {
		if f.Path == "" || !seen[f.Path] {
			kept = append(kept, f)
		}
		seen[f.Path] = true
	}
	slices.SortStableFunc(kept, func(a, b strict.Fault) int { return strings.Compare(a.Path, b.Path) })
	return kept
}
