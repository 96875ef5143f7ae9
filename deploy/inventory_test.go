package deploy_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
)

// reads are the verbs that change nothing.
var reads = []string{"get", "list", "watch"}

// written returns the changes that the Roles of an account permit: for each resource, the sorted verbs.
func written(t *testing.T, objects []object) map[string]string {
	t.Helper()
	var rights []right
	for _, role := range all[rbacv1.ClusterRole](objects) {
		rights = append(rights, granted(t, "", role.Rules)...)
	}
	for _, role := range all[rbacv1.Role](objects) {
		rights = append(rights, granted(t, "", role.Rules)...)
	}
	verbs := map[string]map[string]bool{}
	for _, r := range rights {
		if slices.Contains(reads, r.verb) {
			continue
		}
		resource := strings.TrimPrefix(r.resource, "/")
		if verbs[resource] == nil {
			verbs[resource] = map[string]bool{}
		}
		verbs[resource][r.verb] = true
	}
	written := map[string]string{}
	for resource, of := range verbs {
		written[resource] = strings.Join(slices.Sorted(maps.Keys(of)), ", ")
	}
	return written
}

// inventory returns the rows of the table in docs/security.md: for each account and resource, the permitted verbs.
func inventory(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/security.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| (worker|agent|consumer|renewal) \\| `([^`]+)` \\| ([a-z, ]+)( \\| [^|]+){3} \\|$")
	documented := map[string]map[string]string{"worker": {}, "agent": {}, "consumer": {}, "renewal": {}}
	for _, r := range row.FindAllStringSubmatch(string(text), -1) {
		require.Empty(t, documented[r[1]][r[2]], "%s has two rows about %s", r[1], r[2])
		documented[r[1]][r[2]] = r[3]
	}
	return documented
}

// onlyInventory checks that an account may write, in each of the namespaces, only the kinds in its rows of the
// inventory. An account without rows may write nothing. The parameter rows is the name of the account in the
// inventory.
func (c *cluster) onlyInventory(t *testing.T, account, rows string, namespaces ...string) {
	t.Helper()
	documented := inventory(t)
	resources := map[string]bool{}
	for _, of := range documented {
		for resource := range of {
			resources[resource] = true
		}
	}
	for resource := range resources {
		path := resource
		if group, _, _ := strings.Cut(resource, "/"); !strings.Contains(group, ".") {
			path = "/" + resource // a resource of the core group
		}
		own := strings.Split(documented[rows][resource], ", ")
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			for _, in := range append(namespaces, "kube-system", "") {
				if !slices.Contains(own, verb) {
					mayNot(t, c, account, in, verb, path, "")
				}
			}
		}
	}
}

// The inventory in docs/security.md has a row for each kind that one of our accounts may write, with exactly the
// permitted verbs.
func TestInventoryListsEachWritePermission(t *testing.T) {
	documented := inventory(t)
	agent, err := templateAgent(t, "--values", agentValues("least"), "--set", "grantSlices=true")
	require.NoError(t, err)
	chart := map[bool][]object{}
	for _, o := range render(t, "plaintext", "--set", "market.enabled=true") {
		ofRenewal := o.typed.GetLabels()["app.kubernetes.io/component"] == "renewal"
		chart[ofRenewal] = append(chart[ofRenewal], o)
	}
	for account, objects := range map[string][]object{
		"worker":   chart[false],
		"renewal":  chart[true],
		"agent":    decode(t, agent),
		"consumer": decode(t, []byte(provider.Manifest("munich", "liqo", provider.PodPolicies))),
	} {
		require.Equal(t, written(t, objects), documented[account], "the rows about %s", account)
	}
}
