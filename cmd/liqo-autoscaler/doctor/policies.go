package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
)

// PolicedKinds are the resources that the chart's admission policies must cover for a worker's account. A test
// compares them with the chart. For a worker with the microVM backend, the chart has only the policy for nodes.
var PolicedKinds = []string{"nodes", "pods", "namespaces", "secrets", "rolebindings", "virtualnodes", "identities",
	"renews", "resourceslices", "namespacemaps", "vkoptionstemplates", "configurations", "gatewayclients",
	"gatewayservers", "publickeies"}

// policies checks that the admission policies for the workers' accounts, and for the accounts of consumers in this
// cluster, are in effect. An account whose policies are missing can make itself cluster-admin.
func (r *Report) policies(ctx context.Context, c *cluster) {
	if c.version == nil || c.version.LessThan(policyKubernetes) {
		return
	}
	consumers := r.consumers(ctx, c)
	if len(c.workers)+len(consumers) == 0 {
		return
	}
	client := c.kube.AdmissionregistrationV1()
	policies, err := client.ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{})
	if r.skipped("admission policies", err) {
		return
	}
	bindings, err := client.ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{})
	if r.skipped("bindings of admission policies", err) {
		return
	}
	denies := map[string]bool{}
	for _, b := range bindings.Items {
		if slices.Contains(b.Spec.ValidationActions, admissionv1.Deny) {
			denies[b.Spec.PolicyName] = true
		}
	}
	r.consumerPolicies(consumers, denies)
	for _, p := range c.workers {
		r.workerPolicies(p, policies.Items, denies)
	}
}

// consumerPolicies reports the consumers for which a policy of provider-access is not in effect.
func (r *Report) consumerPolicies(consumers []string, denies map[string]bool) {
	for _, id := range consumers {
		lacking := slices.DeleteFunc(provider.PolicyNames(id), func(name string) bool {
			// With --pod-security privileged, provider-access does not print the policies with these two suffixes.
			return denies[name] || strings.HasSuffix(name, "-pods") || strings.HasSuffix(name, "-services")
		})
		r.examined("admission policies of consumer %s", id)
		if len(lacking) > 0 {
			r.add("consumer-policies", "consumer "+id, "these admission policies of provider-access are not in effect: %s",
				strings.Join(lacking, ", "))
		}
	}
}

// workerPolicies reports the resources in PolicedKinds for which no policy is in effect for a worker's account.
func (r *Report) workerPolicies(p process, policies []admissionv1.ValidatingAdmissionPolicy, denies map[string]bool) {
	user := fmt.Sprintf("'system:serviceaccount:%s:%s'", p.namespace,
		p.pod.ServiceAccountName)
	covered := coveredBy(policies, denies, user)
	lacking := slices.DeleteFunc(slices.Clone(PolicedKinds), func(kind string) bool { return covered[kind] })
	if _, machines := p.flag("microvm-namespace"); machines {
		lacking = slices.DeleteFunc(lacking, func(kind string) bool { return kind != "nodes" })
	}
	r.examined("admission policies of %s", user)
	if len(lacking) > 0 {
		r.add("worker-policies", p.where(), "no effective admission policy limits the writes of its account to %s",
			strings.Join(lacking, ", "))
	}
}

// consumers returns the ids of the consumers that have an account of provider-access in this cluster.
func (r *Report) consumers(ctx context.Context, c *cluster) (ids []string) {
	accounts, err := c.kube.CoreV1().ServiceAccounts(provider.Namespace).List(ctx, metav1.ListOptions{})
	if r.skipped("accounts of consumers", err) {
		return nil
	}
	for i := range accounts.Items {
		if id, ok := strings.CutPrefix(accounts.Items[i].Name, provider.Account("")); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// coveredBy returns the resources that the policies for the account cover. It considers only policies that are in
// effect.
func coveredBy(policies []admissionv1.ValidatingAdmissionPolicy, denies map[string]bool, user string) map[string]bool {
	covered := map[string]bool{}
	for _, policy := range policies {
		if !denies[policy.Name] || !matches(policy, user) {
			continue
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			for _, resource := range rule.Resources {
				covered[resource] = true
			}
		}
	}
	return covered
}

// matches reports whether a policy applies to the account.
func matches(policy admissionv1.ValidatingAdmissionPolicy, user string) bool {
	return policy.Spec.MatchConstraints != nil && slices.ContainsFunc(policy.Spec.MatchConditions,
		func(m admissionv1.MatchCondition) bool { return strings.Contains(m.Expression, user) })
}
