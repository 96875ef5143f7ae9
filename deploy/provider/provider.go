// Package provider holds what a provider applies for one consumer. The YAML files are written for the consumer
// "munich" and Liqo's usual namespace, as one reads them; Manifest puts in others.
package provider

import (
	_ "embed"
	"net/netip"
	"regexp"
	"strings"
)

// Namespace is where a provider keeps the accounts of its consumers.
const Namespace = "liqo-autoscaler"

var (
	//go:embed rbac.yaml
	rbac string
	//go:embed policy.yaml
	policy string
	//go:embed pods.yaml
	pods string
)

// Account is the name of a consumer's ServiceAccount in Namespace.
func Account(consumer string) string { return "consumer-" + consumer }

// policyName finds the names of policies in a manifest.
var policyName = regexp.MustCompile(`(?m)^  policyName: (\S+)$`)

// PolicyNames returns the names of all admission policies that a Manifest for the consumer can have, in its order.
func PolicyNames(consumer string) (names []string) {
	for _, found := range policyName.FindAllStringSubmatch(Manifest(consumer, "liqo", PodPolicies), -1) {
		names = append(names, found[1])
	}
	return names
}

// Policies says which admission policies a Manifest has.
type Policies int

// Each has the policies of the one before.
const (
	NoPolicies Policies = iota
	// AccessPolicies keep the consumer from gaining permissions, and from lifting the provider's refusal.
	AccessPolicies
	// PodPolicies also keep its pods to the Pod Security Standard "baseline".
	PodPolicies
)

// Manifest is the YAML that a provider applies to let a consumer in: namespaces, account, roles and admission policies.
// The consumer's id and the namespace of the provider's Liqo must be DNS-1123 labels. The networks are all that the
// consumer's Configurations may name; none means any.
func Manifest(consumer, liqoNamespace string, policies Policies, networks ...netip.Prefix) string {
	_, text, _ := strings.Cut(rbac, "\n---\n") // what comes before is for readers of the file
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
