package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
)

const agentChart = "helm/liqo-autoscaler-agent"

var agentSets = map[string]string{"least": "liqo-autoscaler-agent", "full": "lender"} // object names

func agentValues(set string) string { return filepath.Join(agentChart, "ci", set+"-values.yaml") }

func templateAgent(t *testing.T, args ...string) ([]byte, error) {
	t.Helper()
	return helm(t, append([]string{"template", "liqo-autoscaler-agent", agentChart, "--namespace", namespace,
		"--kube-version", kube}, args...)...)
}

func renderAgent(t *testing.T, set string) []object {
	t.Helper()
	out, err := templateAgent(t, "--values", agentValues(set))
	require.NoError(t, err, "%s", out)
	return decode(t, out)
}

// The agent can read the config that the chart writes. The binary accepts the flags, and each file exists at the path
// that a flag names.
func TestAgentReadsTheChartsConfig(t *testing.T) {
	for set, name := range agentSets {
		t.Run(set, func(t *testing.T) {
			out, err := helm(t, "lint", agentChart, "--strict", "--quiet", "--kube-version", kube, "--values", agentValues(set))
			require.NoError(t, err, "%s", out)
			o := renderAgent(t, set)
			config, err := agent.Parse([]byte(one[corev1.ConfigMap](t, o, namespace, name).Data["agent.yaml"]))
			require.NoError(t, err)
			require.Equal(t, "milan", config.Provider)
			if set == "full" {
				require.Equal(t, 30, config.TTLSeconds)
				require.Equal(t, "nvidia.com/gpu", config.NodeTolerations[0].Key)
				require.Equal(t, "16", config.Offers[0].Cap.Cpu().String())
				require.Len(t, config.Offers, 2)
				require.Equal(t, []string{"standard", "nginx", "metallb"}, slices.Concat(config.StorageClasses,
					config.IngressClasses, config.LoadBalancerClasses))
				require.Equal(t, agent.SharesWeights, config.Shares)
			}
			pod := one[appsv1.Deployment](t, o, namespace, name).Spec.Template.Spec
			require.Len(t, pod.Containers, 1)
			c := pod.Containers[0]
			help, err := exec.CommandContext(t.Context(), tool(t, "LIQO_AUTOSCALER_AGENT"),
				append(slices.Clone(c.Args), "--help")...).CombinedOutput()
			require.NoError(t, err, "%s", help)
			require.Equal(t, namespace, flagValue(c, "--lease-namespace"))
			mounts := map[string]bool{}
			for _, mount := range c.VolumeMounts {
				mounts[mount.MountPath] = true
			}
			for _, flag := range []string{"--config", "--discovery-token-file", "--discovery-ca"} {
				if file := flagValue(c, flag); file != "" {
					require.True(t, mounts[filepath.Dir(file)], flag)
				}
			}
			require.Len(t, mounts, len(pod.Volumes))
			require.Equal(t, set == "full", flagValue(c, "--discovery-url") != "")
			require.Equal(t, set == "full", flagValue(c, "--discovery-ca") != "")
		})
	}
}

// agentRights are the rights of every agent: it reads objects and holds its Lease.
var agentRights = map[string][]right{
	"cluster": and(on("cluster", "list", slice, tenant, "/nodes", "/pods"),
		on("cluster", "watch", slice, tenant, "/nodes", "/pods")),
	"lease": {
		{where: "lease", verb: "create", resource: "coordination.k8s.io/leases"},
		{where: "lease", verb: "get", resource: "coordination.k8s.io/leases", name: agent.Lease},
		{where: "lease", verb: "update", resource: "coordination.k8s.io/leases", name: agent.Lease},
	},
}

// grantRights are the additional rights of an agent that grants or denies slices.
var grantRights = on("cluster", "update", slice+"/status")

// recordRights are the rights for the ConfigMap in Liqo's namespace in which the agent records its grants.
var recordRights = and(on("record", "create", "/configmaps"), named("record", "get", "/configmaps", agent.RecordName),
	named("record", "update", "/configmaps", agent.RecordName))

// publishRights are the additional rights of an agent without a discovery server.
var publishRights = and(named("cluster", "create", "/configmaps", discovery.PublishedName),
	named("cluster", "patch", "/configmaps", discovery.PublishedName))

func TestAgentRights(t *testing.T) {
	for set, name := range agentSets {
		o := renderAgent(t, set)
		cluster := and(agentRights["cluster"], map[string][]right{"least": publishRights, "full": grantRights}[set])
		require.ElementsMatch(t, cluster, granted(t, "cluster", one[rbacv1.ClusterRole](t, o, "", name).Rules))
		require.ElementsMatch(t, agentRights["lease"], granted(t, "lease", one[rbacv1.Role](t, o, namespace, name).Rules))
		account := map[string]string{"least": name, "full": "measuring"}[set]
		subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: namespace}}
		require.Equal(t, subjects, one[rbacv1.ClusterRoleBinding](t, o, "", name).Subjects)
		require.Equal(t, subjects, one[rbacv1.RoleBinding](t, o, namespace, name).Subjects)
		require.Len(t, all[rbacv1.ClusterRole](o), 1)
		if set == "full" {
			require.ElementsMatch(t, recordRights, granted(t, "record", one[rbacv1.Role](t, o, "liqo-system",
				name+"-grants").Rules))
			require.Equal(t, subjects, one[rbacv1.RoleBinding](t, o, "liqo-system", name+"-grants").Subjects)
		}
		require.Len(t, all[rbacv1.Role](o), map[string]int{"least": 1, "full": 2}[set])
		require.Equal(t, set == "least", len(all[corev1.ServiceAccount](o)) == 1)
	}
}

// The schema has exactly the keys of values.yaml, and for an offer the keys that the code reads.
func TestAgentSchema(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(agentChart, "values.schema.json"))
	require.NoError(t, err)
	var root schema
	require.NoError(t, json.Unmarshal(raw, &root))
	var values map[string]any
	raw, err = os.ReadFile(filepath.Join(agentChart, "values.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &values))
	keys := append(slices.Collect(maps.Keys(values)), "global")
	require.ElementsMatch(t, slices.Collect(maps.Keys(root.Properties)), keys)
	for key, of := range root.Properties {
		given, ok := values[key].(map[string]any)
		if ok && of.Properties != nil {
			require.ElementsMatch(t, slices.Collect(maps.Keys(of.Properties)), slices.Collect(maps.Keys(given)), key)
			require.Equal(t, "false", string(of.AdditionalProperties), key)
		}
	}
	known := []string{"consumer", "hub", "name", "credentials", "cap", "weight", "allowAggregate", "maxNodes", "labels",
		"price", "prices", "currency", "latencyMilliseconds", "lingerSeconds", "unpeer"}
	require.ElementsMatch(t, known, slices.Collect(maps.Keys(root.Definitions["offer"].Properties)))

	for change, says := range map[string]string{
		"offers=null": "offers", "provider=Milan": "provider", "discovery.url=http://x": "discovery.url", "typo=1": "typo",
		"discovery.token.secretName=": "discovery.token.secretName", "offers[0].lendable.cpu=1": "lendable",
		"offers[0].credentials.kubeconfigFile=x": "kubeconfigFile", "ttlSeconds=1": "ttlSeconds",
		"reserve.cpu=lots": "reserve.cpu", "grantSlices=false": "denyDefaultClass needs grantSlices",
	} {
		out, err := templateAgent(t, "--values", agentValues("full"), "--set", change)
		require.Error(t, err, change)
		require.Contains(t, string(out), says)
	}
}
