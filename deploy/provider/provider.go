// Package provider contains the manifests that a provider applies for one consumer. The YAML files contain the example
// consumer "munich" and Liqo's default namespace, so that they are readable. Manifest replaces both.
package provider

import (
	_ "embed"
	"net/netip"
	"regexp"
	"strings"
)

// Namespace is the namespace of the ServiceAccounts of a provider's consumers.
const Namespace = "liqo-autoscaler"

var (
	//go:embed rbac.yaml
	rbac string
	//go:embed policy.yaml
	policy string
	//go:embed pods.yaml
	pods string
)

// Account returns the name of a consumer's ServiceAccount in Namespace.
func Account(consumer string) string { return "consumer-" + consumer }

// policyName matches the names of policies in a manifest.
var policyName = regexp.MustCompile(`(?m)^  policyName: (\S+)$`)

// PolicyNames returns the names of all admission policies that a Manifest for the consumer can contain, in the order
// of the Manifest.
func PolicyNames(consumer string) (names []string) {
	for _, found := range policyName.FindAllStringSubmatch(Manifest(consumer, "liqo", PodPolicies), -1) {
		names = append(names, found[1])
	}
	return names
}

// Policies selects the admission policies of a Manifest.
type Policies int

// Each value selects the policies of the previous value, too.
const (
	NoPolicies Policies = iota
	// AccessPolicies prevent the consumer from gaining permissions, and from undoing the provider's refusal.
	AccessPolicies
	// PodPolicies, in addition, restrict the consumer's pods to the Pod Security Standard "baseline".
	PodPolicies
)

// Manifest returns the YAML that a provider applies to give a consumer access: namespaces, account, roles and
// admission policies. The parameter liqoNamespace is the namespace of Liqo on the provider. It and the consumer's id
// must be DNS-1123 labels. The policies permit only the given networks in the consumer's Configurations. If no
// networks are given, the policies permit all networks.
func Manifest(consumer, liqoNamespace string, policies Policies, networks ...netip.Prefix) string {
	_, text, _ := strings.Cut(rbac, "\n---\n") // drops the comment for readers of the file
	if policies >= AccessPolicies {
		text += "---\n" + policy
	}
	if policies >= PodPolicies {
		text += "---\n" + pods
	}
	allowed := []string{"any"}
	if len(networks) > 0 {
		allowed = nil
	}
	for _, n := range networks {
		allowed = append(allowed, n.String())
	}
	return strings.NewReplacer("namespace: liqo\n", "namespace: "+liqoNamespace+"\n",
		`"'liqo'"`, `"'`+liqoNamespace+`'"`, `"['any']"`, `"['`+strings.Join(allowed, "', '")+`']"`,
		"munich", consumer).Replace(text)
}
