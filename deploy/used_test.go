package deploy_test

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
)

// rightsUsed is the record that `make e2e SUITE=rights` writes. It lists the rights of our accounts that the API
// servers of the lab have used to permit requests. If the environment variable envRightsUsed is set, the test reads
// another record, which this variable names.
const (
	rightsUsed    = "testdata/rights-used.txt"
	envRightsUsed = "RIGHTS_USED"
)

// byTest is the reason for which no record has the rights of the CronJob.
const byTest = "the CronJob runs in no suite: TestInstall/*/renewal"

// byMirror is the reason for which the record has no rights of the mirror: the suites do not install the CRDs of the
// mirror.
const byMirror = "no suite has the CRDs: TestInstall/mirror"

// unseen contains the rights that no record has, each with the reason.
var unseen = map[string]string{
	"ClusterRole liqo-autoscaler-agent create /configmaps": "no request of its own: asked for when a ConfigMap that is " +
		"not there is applied",
	"ClusterRole liqo-autoscaler-worker-tenant update offloading.liqo.io/vkoptionstemplates": "Liqo is upgraded in no " +
		"suite: TestNodeWithoutNetworkUsesCurrentOptions in activities/backend/liqo",
	"ClusterRole liqo-autoscaler-worker bind rbac.authorization.k8s.io/clusterroles": "no request of its own: asked for " +
		"when the RoleBinding is created, see admitted in policy_test.go",
	"ClusterRole liqo-autoscaler-worker update authentication.liqo.io/resourceslices/finalizers": "no request of its " +
		"own: asked for on OpenShift when the VirtualNode is created, see ownsVirtualNode",
	"Role liqo-autoscaler/liqo-autoscaler-market-writer list liqo-autoscaler.io/liqonodegroups":          byMirror,
	"Role liqo-autoscaler/liqo-autoscaler-market-writer list liqo-autoscaler.io/liqooffers":              byMirror,
	"Role liqo-autoscaler/liqo-autoscaler-market-writer create liqo-autoscaler.io/liqonodegroups":        byMirror,
	"Role liqo-autoscaler/liqo-autoscaler-market-writer create liqo-autoscaler.io/liqooffers":            byMirror,
	"Role liqo-autoscaler/liqo-autoscaler-market-writer delete liqo-autoscaler.io/liqonodegroups":        byMirror,
	"Role liqo-autoscaler/liqo-autoscaler-market-writer delete liqo-autoscaler.io/liqooffers":            byMirror,
	"Role liqo-autoscaler/liqo-autoscaler-market-writer update liqo-autoscaler.io/liqonodegroups/status": byMirror,
	"Role liqo-autoscaler/liqo-autoscaler-market-writer update liqo-autoscaler.io/liqooffers/status":     byMirror,
	"Role default/liqo-autoscaler-renewal get /secrets":                                                  byTest,
	"Role default/liqo-autoscaler-renewal patch /secrets":                                                byTest,
	"Role liqo-autoscaler/liqo-autoscaler-renewal get /secrets":                                          byTest,
	"Role liqo-autoscaler/liqo-autoscaler-renewal list /secrets":                                         byTest,
	"Role liqo-autoscaler/liqo-autoscaler-renewal patch /secrets":                                        byTest,
	"Role liqo-tenant-consumer/liqo-autoscaler-consumer-consumer get /configmaps": "no suite has an offer that is " +
		"measured: TestPublished in activities/backend/liqo",
}

// usedAtTimes contains the rights that a record may have or not have, because their use depends on Liqo's speed
// during the run. Each has its reason.
var usedAtTimes = map[string]string{
	"ClusterRole liqo-autoscaler-worker patch authentication.liqo.io/resourceslices": "crd-replicator is reminded of a " +
		"slice, or its finalizer removed, only when it has failed: TestUnansweredSliceIsNoDenial and " +
		"TestReturnRemovesFinalizersAfterTenantRemoval in activities/backend/liqo",
	"ClusterRole liqo-autoscaler-worker get authentication.liqo.io/resourceslices": "read by name before a slice that " +
		"is left on a provider is removed there, and crd-replicator mostly removes it first: " +
		"TestLeftoversAreObjectsWithoutACounterpart in activities/backend/liqo",
}

// The suites have used every right that the charts and provider-access grant, except those in unseen. Every right
// that the suites have used is granted.
func TestRightsAreUsed(t *testing.T) {
	// These are the values of the suites, whose consumer cluster is named "consumer".
	objects := render(t, "plaintext", "--set", "offerSecrets.enabled=true,"+
		"offers[0].credentials.secretRef.namespace=default")
	agent, err := templateAgent(t, "--values", agentValues("least"), "--set", "grantSlices=true")
	require.NoError(t, err, "%s", agent)
	manifest := provider.Manifest("consumer", "liqo", provider.PodPolicies)
	objects = slices.Concat(objects, decode(t, agent), decode(t, []byte(manifest)))
	given := map[string]bool{}
	for _, role := range all[rbacv1.ClusterRole](objects) {
		for _, r := range granted(t, "ClusterRole "+role.Name, role.Rules) {
			given[r.where+" "+r.verb+" "+r.resource] = true
		}
	}
	for _, role := range all[rbacv1.Role](objects) {
		for _, r := range granted(t, "Role "+role.Namespace+"/"+role.Name, role.Rules) {
			given[r.where+" "+r.verb+" "+r.resource] = true
		}
	}
	for right := range unseen {
		require.True(t, given[right], "%q is granted no longer: remove it here", right)
		delete(given, right)
	}
	for right := range usedAtTimes {
		require.True(t, given[right], "%q is granted no longer: remove it here", right)
	}
	path := cmp.Or(os.Getenv(envRightsUsed), rightsUsed)
	record, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && path == rightsUsed {
		t.Skip("no record yet: make e2e SUITE=rights makes one")
	}
	require.NoError(t, err)
	used := strings.Split(strings.TrimSpace(string(record)), "\n")
	var lacking []string
	for _, right := range used {
		require.NotContains(t, unseen, right)
		if !given[right] {
			lacking = append(lacking, right)
		}
		delete(given, right)
	}
	for right := range usedAtTimes {
		delete(given, right)
	}
	if len(lacking) > 0 {
		t.Errorf("suites have used these, and they are not granted: grant them, or record anew\n%s",
			strings.Join(lacking, "\n"))
	}
	if idle := slices.Sorted(maps.Keys(given)); len(idle) > 0 {
		t.Errorf("these are granted, and used by no suite: remove them, or have a suite use them and record that by "+
			"make e2e SUITE=rights\n%s", strings.Join(idle, "\n"))
	}
}
