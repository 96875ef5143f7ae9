package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/doctor"
)

// Each policy applies to the worker's account or to the account of the renewal. The chart renders no policies if the
// values disable them.
func TestPoliciesNameTheWorkersAccount(t *testing.T) {
	for _, set := range valueSets {
		o := render(t, set)
		account := nameOf(set) + "-worker"
		policies := all[admissionv1.ValidatingAdmissionPolicy](o)
		require.Len(t, policies, 4)
		for _, p := range policies {
			who := account
			if strings.HasSuffix(p.Name, "-renewal") {
				who = nameOf(set) + "-renewal"
			}
			require.Equal(t, "request.userInfo.username == 'system:serviceaccount:"+namespace+":"+who+"'",
				p.Spec.MatchConditions[0].Expression)
			require.Equal(t, admissionv1.Fail, *p.Spec.FailurePolicy)
			binding := one[admissionv1.ValidatingAdmissionPolicyBinding](t, o, "", p.Name)
			require.Equal(t, p.Name, binding.Spec.PolicyName)
			require.Equal(t, []admissionv1.ValidationAction{admissionv1.Deny}, binding.Spec.ValidationActions)
		}
		for _, without := range []string{"rbac.policies=false", "rbac.create=false"} {
			require.Empty(t, all[admissionv1.ValidatingAdmissionPolicy](render(t, set, "--set", without)))
		}
	}
}

// TestPoliciesAreRenderedWithoutACluster checks that `helm template` renders the policies, although it is not
// connected to a cluster.
func TestPoliciesAreRenderedWithoutACluster(t *testing.T) {
	for _, set := range valueSets {
		for _, version := range []string{"v1.30.0", "v1.33.4-gke.100", "v1.41.0"} {
			o := render(t, set, "--kube-version", version)
			require.Len(t, all[admissionv1.ValidatingAdmissionPolicy](o), 4, version)
		}
	}
	out, err := templateAgent(t, "--values", agentValues("full"), "--kube-version", "v1.30.0")
	require.NoError(t, err, "%s", out)
	require.Len(t, all[admissionv1.ValidatingAdmissionPolicy](decode(t, out)), 1)
}

// TestOldClusterNeedsDisabledPolicies checks that the chart fails for a version of Kubernetes without
// ValidatingAdmissionPolicies. The error names the value that disables the policies.
func TestOldClusterNeedsDisabledPolicies(t *testing.T) {
	for _, version := range []string{"v1.27.0", "v1.29.9", "v1.29.9-gke.100"} {
		old := []string{"--values", valuesFile("certmanager"), "--kube-version", version}
		out, err := template(t, old...)
		require.Error(t, err)
		require.Contains(t, string(out), "Kubernetes "+version+" has no ValidatingAdmissionPolicies")
		require.Contains(t, string(out), "rbac.policies: false")
		for _, without := range []string{"rbac.policies=false", "rbac.create=false"} {
			out, err = template(t, append(old, "--set", without)...)
			require.NoError(t, err, "%s", out)
			require.NotContains(t, string(out), "ValidatingAdmissionPolicy")
		}
		out, err = templateAgent(t, "--values", agentValues("full"), "--kube-version", version)
		require.Error(t, err)
		require.Contains(t, string(out), "denyDefaultClass needs Kubernetes 1.30")
	}
}

// doctor expects policies for exactly those resources for which the chart has policies.
func TestDoctorKnowsThePolicies(t *testing.T) {
	kinds := map[string]bool{}
	for _, p := range all[admissionv1.ValidatingAdmissionPolicy](render(t, "plaintext")) {
		for _, rule := range p.Spec.MatchConstraints.ResourceRules {
			for _, resource := range rule.Resources {
				kinds[resource] = true
			}
		}
	}
	require.ElementsMatch(t, doctor.PolicedKinds, slices.Collect(maps.Keys(kinds)))
}
