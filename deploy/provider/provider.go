// Package provider holds what a provider applies for one consumer. The YAML files are written for the consumer
// "munich" and Liqo's usual namespace, as one reads them; Manifest puts in others.
package provider

import (
	_ "embed"
	"strings"
)

// Namespace is where a provider keeps the accounts of its consumers.
const Namespace = "liqo-autoscaler"

var (
	//go:embed rbac.yaml
	rbac string
	//go:embed policy.yaml
	policy string
)

// Account is the name of a consumer's ServiceAccount in Namespace.
func Account(consumer string) string { return "consumer-" + consumer }

// Manifest is the YAML that a provider applies to let a consumer in: namespaces, account, roles and, if wanted, the
// admission policies. The consumer's id and the namespace of the provider's Liqo must be DNS-1123 labels.
func Manifest(consumer, liqoNamespace string, withPolicy bool) string {
	_, text, _ := strings.Cut(rbac, "\n---\n") // what comes before is for readers of the file
	if withPolicy {
		text += "---\n" + policy
	}
	return strings.NewReplacer("namespace: liqo\n", "namespace: "+liqoNamespace+"\n", "munich", consumer).Replace(text)
}
