package deploy_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// validation is one rule of an admission policy. Both charts contain the same rules, in policies with different
// names.
type validation struct{ expression, message string }

func ruleOf(v admissionv1.Validation) validation { return validation{v.Expression, v.Message} }

// denial matches an API server's answer if a policy has refused a request (Kubernetes
// pkg/admission/plugin/policy/validating/dispatcher.go).
var denial = regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.*)`)

// removeEach checks that each validation is needed. For each attempt that a validation refuses, it removes this
// validation from the policy, checks that the attempt is no longer refused in the same way, and restores the
// validation.
func (c *cluster) removeEach(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		if a.denied == "" {
			continue
		}
		said := denial.FindStringSubmatch(fmt.Sprint(a.try(t.Context())))
		if said == nil {
			continue // the attempt is refused because a permission is missing
		}
		policy, err := c.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), said[1],
			metav1.GetOptions{})
		require.NoError(t, err)
		all := policy.Spec.Validations
		n := slices.IndexFunc(all, func(v admissionv1.Validation) bool { return v.Message == said[2] })
		require.GreaterOrEqual(t, n, 0, "policy %s does not say %q", policy.Name, said[2])
		rule := ruleOf(all[n])
		if c.removed[rule] {
			continue
		}
		without := slices.Clone(all)
		without[n] = admissionv1.Validation{Expression: "true"} // a policy needs at least one validation
		c.validate(t, policy.Name, without)
		testkit.Until(t, time.Minute, fmt.Sprintf("%s: refused without its validation", a.what), func() error {
			if err := a.try(t.Context()); refused(err, a.denied) {
				return err
			}
			return nil
		})
		c.validate(t, policy.Name, all)
		c.removed[rule] = true
	}
}

// validate replaces the validations of the policy by the given rules.
func (c *cluster) validate(t *testing.T, policy string, rules []admissionv1.Validation) {
	t.Helper()
	policies := c.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := policies.Get(t.Context(), policy, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Spec.Validations = rules
		_, err = policies.Update(t.Context(), current, metav1.UpdateOptions{})
		return err
	}))
}

// eachWasRemoved checks that removeEach has removed each validation of the installed policies, and so has shown that
// each validation is needed.
func (c *cluster) eachWasRemoved(t *testing.T) {
	t.Helper()
	policies, err := c.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, policies.Items)
	var idle []string
	for _, policy := range policies.Items {
		messages := map[string]bool{}
		for _, v := range policy.Spec.Validations {
			require.NotEmpty(t, v.Message, "policy %s: %s", policy.Name, v.Expression)
			require.False(t, messages[v.Message], "policy %s says twice: %s", policy.Name, v.Message)
			messages[v.Message] = true
			if !c.removed[ruleOf(v)] {
				idle = append(idle, policy.Name+": "+v.Message)
			}
		}
	}
	require.Empty(t, idle, "no attempt is refused with these")
}
