package deploy_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/provider"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/observer"
)

// Every place in the code that uses a client has a row in the table of rights. The table has no other rows.
func TestEveryUseOfAClientIsKnown(t *testing.T) {
	for dir, known := range map[string]map[string][]right{"../activities/backend/liqo": needs,
		"../discovery/secrets": needsOfOffers, "../discovery/market": needsOfMarket,
		"../worker/observer": needsOfHub, "../worker/mirror": needsOfMirror,
		"../activities/backend/nodes": needsOfNodes, "../activities/backend/microvm": needsOfMachines} {
		sites := callSites(t, dir)
		var unknown, gone []string
		for _, site := range sites {
			if _, ok := known[site]; !ok {
				unknown = append(unknown, site)
			}
		}
		for site := range known {
			if !slices.Contains(sites, site) {
				gone = append(gone, site)
			}
		}
		require.Empty(t, unknown, "new uses of a Kubernetes client in %s: say in rights_test.go which right each takes, "+
			"and grant it in templates/worker-rbac.yaml or provider/rbac.yaml", dir)
		require.Empty(t, gone, "no such uses in %s any longer: remove them from rights_test.go", dir)
	}
}

func needed(where ...string) []right {
	return neededOf([]map[string][]right{needs, needsOfOffers, needsOfMarket, needsOfHub, needsOfLease, needsOfEvents,
		needsOfRenewal, needsOfNodes, needsOfMirror}, where...)
}

func neededOf(tables []map[string][]right, where ...string) []right {
	set := map[right]bool{}
	for _, table := range tables {
		for _, rights := range table {
			for _, r := range rights {
				if slices.Contains(where, r.where) {
					set[r] = true
				}
			}
		}
	}
	return sorted(set)
}

func granted(t *testing.T, where string, rules []rbacv1.PolicyRule) []right {
	set := map[right]bool{}
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						r := right{where: where, verb: verb, resource: group + "/" + resource, name: name}
						require.False(t, set[r], "granted twice: %+v", r)
						require.NotContains(t, []string{group, resource, verb}, "*")
						set[r] = true
					}
				}
			}
		}
		require.Empty(t, rule.NonResourceURLs)
	}
	return sorted(set)
}

func sorted(set map[right]bool) []right {
	return slices.SortedFunc(maps.Keys(set), func(a, b right) int {
		key := func(r right) string { return strings.Join([]string{r.where, r.resource, r.name, r.verb}, " ") }
		return strings.Compare(key(a), key(b))
	})
}

// The worker's roles contain exactly the rights in the table.
func TestWorkerHasExactlyTheRightsThatItUses(t *testing.T) {
	o := render(t, "existing")
	require.Equal(t, needed("cluster"), granted(t, "cluster", one[rbacv1.ClusterRole](t, o, "", "lender-worker").Rules))
	require.Equal(t, needed("here"), granted(t, "here", one[rbacv1.ClusterRole](t, o, "", tenantRole).Rules))
	require.Equal(t, needed("liqo"), granted(t, "liqo", one[rbacv1.Role](t, o, "liqo-system", "lender-worker").Rules))
	require.Equal(t, needed("events"), granted(t, "events", one[rbacv1.Role](t, o, "default", "lender-events").Rules))

	credentials := func(namespace string) []right {
		return granted(t, "credentials", one[rbacv1.Role](t, o, namespace, "lender-credentials").Rules)
	}
	require.Equal(t, needed("credentials"), credentials("partners"),
		"offers of the discovery server may name any Secret there")
	offers := slices.Concat(needed("credentials"), needed("offers"))
	for i := range offers {
		offers[i].where = "credentials"
	}
	require.Equal(t, offers, credentials("providers"), "offer Secrets are watched there")
}

// For hosts of microVMs, the worker has the rights for these hosts, and no rights for Liqo's kinds.
func TestWorkerForMachinesHasNoRightsOfLiqo(t *testing.T) {
	o := render(t, "existing", "--set", "microvm.enabled=true,microvm.namespace=machines")
	uses := []map[string][]right{needsOfMachines, needsOfNodes}
	require.Equal(t, neededOf(uses, "cluster"),
		granted(t, "cluster", one[rbacv1.ClusterRole](t, o, "", "lender-worker").Rules))
	require.Equal(t, neededOf(uses, "machines"),
		granted(t, "machines", one[rbacv1.Role](t, o, "machines", "lender-worker").Rules))
	require.Len(t, all[rbacv1.ClusterRole](o), 2)
	for _, role := range all[rbacv1.Role](o) {
		require.NotEqual(t, "liqo-system", role.Namespace)
	}
	policies := all[admissionv1.ValidatingAdmissionPolicy](o)
	require.Len(t, policies, 1)
	require.Equal(t, "request.resource.resource != 'nodes' || "+
		"('liqo-autoscaler.io/provider' in oldObject.metadata.?labels.orValue({}))",
		policies[0].Spec.Validations[0].Expression)
	require.Len(t, all[admissionv1.ValidatingAdmissionPolicyBinding](o), 1)
	args := one[appsv1.Deployment](t, o, namespace, "lender-worker").Spec.Template.Spec.Containers[0].Args
	require.Subset(t, args, []string{"--backend=microvm", "--microvm-namespace=machines"})
	_, err := template(t, "--values", valuesFile("existing"), "--set", "microvm.enabled=true")
	require.Error(t, err, "without a namespace")
}

// The worker may read only the kubeconfigs that the values name. Its role contains the name of each kubeconfig's
// Secret.
func TestCredentialsAreGrantedByName(t *testing.T) {
	o := render(t, "certmanager")
	require.Equal(t, []right{
		{where: "credentials", verb: "get", resource: "/secrets", name: "milan"},
		{where: "credentials", verb: "get", resource: "/secrets", name: "turin"},
	}, granted(t, "credentials", one[rbacv1.Role](t, o, "providers", "liqo-autoscaler-credentials").Rules))
}

// Only one account may write the market, and only one may read it.
func TestMarketHasOneWriterAndOneReader(t *testing.T) {
	o := render(t, "plaintext")
	for _, role := range []string{"writer", "reader"} {
		require.Equal(t, needed(role), granted(t, role, one[rbacv1.Role](t, o, namespace,
			"liqo-autoscaler-market-"+role).Rules))
	}
	o = render(t, "plaintext", "--set", "mirror.enabled=false")
	require.Equal(t, neededOf([]map[string][]right{needsOfMarket, needsOfEvents}, "writer"), granted(t, "writer",
		one[rbacv1.Role](t, o, namespace, "liqo-autoscaler-market-writer").Rules))
	o = render(t, "plaintext", "--set", "market.enabled=false")
	for _, role := range all[rbacv1.Role](o) {
		require.NotContains(t, role.Name, "market")
	}
}

// The worker has the rights for the hub's Lease and ConfigMaps in kube-system, with and without a market. The worker
// and the gRPC server may read the cluster's identity, the UID of the namespace kube-system.
func TestHubsLeaseBelongsToTheWorker(t *testing.T) {
	for _, set := range []string{"market.enabled=true", "market.enabled=false"} {
		o := render(t, "plaintext", "--set", set)
		own := namespace + ".liqo-autoscaler.hub"
		require.Equal(t, needed("hub"), granted(t, "hub", one[rbacv1.Role](t, o, observer.Namespace, own).Rules))
		require.Equal(t, []right{{where: "uid", verb: "get", resource: "/namespaces", name: "kube-system"}},
			granted(t, "uid", one[rbacv1.ClusterRole](t, o, "", "liqo-autoscaler-hub").Rules))
		var names []string
		for _, s := range one[rbacv1.ClusterRoleBinding](t, o, "", "liqo-autoscaler-hub").Subjects {
			names = append(names, s.Name)
		}
		require.Equal(t, []string{"liqo-autoscaler-worker", "liqo-autoscaler-grpcserver"}, names)
	}
}

// Each Role is bound to the worker's account, with two exceptions. The role that reads the market is bound to the
// gRPC server, and the role of the renewal is bound to the renewal's account.
func TestEachRoleIsBoundToItsAccount(t *testing.T) {
	for _, set := range valueSets {
		t.Run(set, func(t *testing.T) {
			o := render(t, set)
			account, roles := "liqo-autoscaler-worker", map[string]bool{}
			if set == "existing" {
				account = "lender-worker"
			}
			subject := rbacv1.Subject{Kind: "ServiceAccount", Name: account, Namespace: namespace}
			for _, binding := range all[rbacv1.RoleBinding](o) {
				want := subject
				if strings.HasSuffix(binding.Name, "-market-reader") {
					want.Name = strings.TrimSuffix(account, "worker") + "grpcserver"
				}
				if strings.HasSuffix(binding.Name, "-renewal") {
					want.Name = binding.Name
				}
				require.Equal(t, []rbacv1.Subject{want}, binding.Subjects)
				require.Equal(t, "Role", binding.RoleRef.Kind)
				roles[binding.Namespace+"/"+binding.RoleRef.Name] = true
			}
			for _, role := range all[rbacv1.Role](o) {
				require.True(t, roles[role.Namespace+"/"+role.Name], "role %s/%s is bound", role.Namespace, role.Name)
			}
			require.Len(t, all[rbacv1.Role](o), len(roles))
			binding := one[rbacv1.ClusterRoleBinding](t, o, "", account)
			require.Equal(t, []rbacv1.Subject{subject}, binding.Subjects)
			require.Equal(t, one[rbacv1.ClusterRole](t, o, "", account).Name, binding.RoleRef.Name)
			require.Len(t, all[rbacv1.ClusterRoleBinding](o), 2)
		})
	}
}

// provider-access grants exactly the rights that a consumer uses on a provider: in its own tenant namespace, in the
// namespace of the accounts, in Liqo's namespace, and for its own namespace object.
func TestProviderGrantsTheConsumersUses(t *testing.T) {
	o := decode(t, []byte(provider.Manifest("munich", "liqo", provider.PodPolicies)))
	name := "liqo-autoscaler-consumer-munich"
	require.Equal(t, needed("itself"), granted(t, "itself", one[rbacv1.ClusterRole](t, o, "", name).Rules))
	require.Equal(t, needed("tenant"), granted(t, "tenant", one[rbacv1.Role](t, o, "liqo-tenant-munich", name).Rules))
	require.Equal(t, needed("account"), granted(t, "account", one[rbacv1.Role](t, o, provider.Namespace, name).Rules))
	require.Equal(t, needed("provider liqo"), granted(t, "provider liqo", one[rbacv1.Role](t, o, "liqo", name).Rules))
}

// The manifest for a consumer is valid YAML for any id and any namespace of Liqo. It contains the policies that the
// argument selects, each with a binding.
func TestProviderManifestIsValidForAnyID(t *testing.T) {
	for _, id := range []string{"rome", "123", "1e3", "true", "liqo", "munich-2"} {
		o := decode(t, []byte(provider.Manifest(id, "liqo-of-munich", provider.PodPolicies)))
		tenancy := one[corev1.Namespace](t, o, "", "liqo-tenant-"+id)
		require.Equal(t, id, tenancy.Labels["liqo.io/remote-cluster-id"])
		one[rbacv1.Role](t, o, "liqo-of-munich", "liqo-autoscaler-consumer-"+id)
		require.Len(t, all[admissionv1.ValidatingAdmissionPolicy](o), 9)
		bindings := all[admissionv1.ValidatingAdmissionPolicyBinding](o)
		require.Len(t, bindings, 9)
		for _, b := range bindings {
			one[admissionv1.ValidatingAdmissionPolicy](t, o, "", b.Spec.PolicyName)
		}
		bare := decode(t, []byte(provider.Manifest(id, "liqo", provider.NoPolicies)))
		require.Equal(t, len(o)-18, len(bare))
		privileged := decode(t, []byte(provider.Manifest(id, "liqo", provider.AccessPolicies)))
		require.Equal(t, len(o)-4, len(privileged))
	}
}
