package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
)

// configFile writes a node-group config to a file and returns the path.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodegroups.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestConfigValidate(t *testing.T) {
	out, _, err := command(t.Context(), "config", "validate", configFile(t, `
limits: {nodes: 20, cpu: 80, memory: 160Gi}
defaults: {max: 5, shape: {cpu: 2, memory: 4Gi, pods: 110}}
nodeGroups: [{id: cpu, min: 1}, {id: own, groupTaint: NoSchedule, max: 2}]`))
	require.NoError(t, err)
	require.Equal(t, `ok: hub default, 2 node groups, limits nodes=20,cpu=80,memory=160Gi
  cpu: 1 to 5 nodes of cpu=2,memory=4Gi,pods=110
  own: 0 to 2 nodes of cpu=2,memory=4Gi,pods=110, taints liqo-autoscaler.io/group=own:NoSchedule
`, out)

	out, _, err = command(t.Context(), "config", "validate", configFile(t, `
defaults: {max: 20, shape: {pods: 110}}
nodeGroups:
- id: burst
  minPerGroup: 1
  groupTaint: NoSchedule
  sizes: [{name: small, shape: {cpu: 2, memory: 4Gi}}, {name: large, shape: {cpu: 8, memory: 32Gi}}]
- {id: near, per: provider, shape: {cpu: 2, memory: 4Gi}}
- id: far
  per: label:topology.kubernetes.io/region
  sizes: [{name: small, shape: {cpu: 2, memory: 4Gi}}]`))
	require.NoError(t, err)
	require.Equal(t, `ok: hub default, 3 node groups, limits none
  burst-small: 1 to 20 nodes of cpu=2,memory=4Gi,pods=110, taints liqo-autoscaler.io/group=burst-small:NoSchedule
  burst-large: 1 to 20 nodes of cpu=8,memory=32Gi,pods=110, taints liqo-autoscaler.io/group=burst-large:NoSchedule
  near-<provider>: 0 to 20 nodes of cpu=2,memory=4Gi,pods=110 on each provider that matches
  far-small-<topology.kubernetes.io/region>: 0 to 20 nodes of cpu=2,memory=4Gi,pods=110 for each value of the label
`, out)

	broken := configFile(t, "nodeGroups: [{id: A, sise: 1, max: 1}]")
	out, _, err = command(t.Context(), "config", "validate", broken)
	require.Empty(t, out)
	require.EqualError(t, err, "read node groups from "+broken+`:
nodeGroups[0].shape: is missing: give the cpu, memory and pods of each node
nodeGroups[0].id: "A" cannot name a group: use at most 24 lower-case letters, digits and dashes, with a letter or digit at both ends
nodeGroups[0].sise: unknown field: remove it, or use one of budgets, currency, groupTaint, id, labels, max, min, minPerGroup, nodes, per, priceFactor, provider, selection, selector, shape, sizes, spending, standby, taints, volumes`)
}

func TestConfigView(t *testing.T) {
	file := configFile(t, string(examples.NodeGroups))
	want, err := config.Load(file)
	require.NoError(t, err)
	for _, format := range []string{"yaml", "json"} {
		out, _, err := command(t.Context(), "config", "view", file, "-o", format)
		require.NoError(t, err)
		got, err := config.Parse([]byte(out))
		require.NoError(t, err)
		require.Equal(t, want.NodeGroups[0].Bases()[0].Hash(), got.NodeGroups[0].Bases()[0].Hash())
		require.Contains(t, out, "1m30s", "defaults are in it")
	}
	_, _, err = command(t.Context(), "config", "view", file, "-o", "xml")
	require.ErrorContains(t, err, "use yaml or json")
}

func TestConfigSchema(t *testing.T) {
	out, _, err := command(t.Context(), "config", "schema")
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &schema))
	require.Equal(t, "https://json-schema.org/draft/2020-12/schema", schema["$schema"])
}

// caFile is the file that CA reads (CA cloudprovider/externalgrpc/externalgrpc_cloud_provider.go, cloudConfig).
type caFile struct {
	Address     string `json:"address"`
	Key         string `json:"key"`
	Cert        string `json:"cert"`
	CACert      string `json:"cacert"`
	GRPCTimeout string `json:"grpc_timeout"`
}

func TestCloudConfig(t *testing.T) {
	read := func(args ...string) (f caFile) {
		out, _, err := command(t.Context(), append([]string{"config", "cloud-config"}, args...)...)
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict([]byte(out), &f))
		return f
	}
	require.Equal(t, caFile{
		Address: "liqo-autoscaler.liqo-autoscaler.svc:8086", GRPCTimeout: "5s",
		Cert: "/etc/liqo-autoscaler/tls/tls.crt", Key: "/etc/liqo-autoscaler/tls/tls.key",
		CACert: "/etc/liqo-autoscaler/tls/ca.crt",
	}, read())
	require.Equal(t, caFile{Address: "[::1]:8086", GRPCTimeout: "10s"}, read("--plaintext", "--address", "[::1]:8086",
		"--grpc-timeout", "10s"))

	for _, args := range [][]string{
		{"--address", "nowhere"}, {"--grpc-timeout", "1ms"}, {"--key", ""}, {"-o", "xml"}, {"--config", "absent.yaml"},
		{"--grpc-expander", "--plaintext"},
	} {
		_, _, err := command(t.Context(), append([]string{"config", "cloud-config"}, args...)...)
		require.Error(t, err, "%v", args)
	}
}

func TestCloudConfigPrintsValuesForCAsChart(t *testing.T) {
	read := func(args ...string) (values map[string]any) {
		out, _, err := command(t.Context(), append([]string{"config", "cloud-config", "-o", "helm-values"}, args...)...)
		require.NoError(t, err)
		require.NoError(t, yaml.UnmarshalStrict([]byte(out), &values))
		return values
	}
	values := read()
	require.Equal(t, "externalgrpc", values["cloudProvider"])
	require.Equal(t, map[string]any{"clusterName": "consumer"}, values["autoDiscovery"])
	require.Len(t, values["extraVolumeSecrets"], 2)
	args := values["extraArgs"].(map[string]any)
	require.Equal(t, "15m", args["max-node-provision-time"])
	require.Equal(t, true, args["enforce-node-group-min-size"])

	groups := configFile(t, "nodeGroups: [{id: a, min: 1, max: 2, shape: {cpu: 1, memory: 1Gi, pods: 10}, budgets: "+
		"{total: 59m}}]")
	values = read("--plaintext", "--config", groups)
	require.Len(t, values["extraVolumeSecrets"], 1)
	args = values["extraArgs"].(map[string]any)
	require.Equal(t, "1h2m", args["max-node-provision-time"])
	require.Equal(t, "least-waste", args["expander"])

	args = read("--grpc-expander", "--address", "here:1", "--cacert", "/ca.crt")["extraArgs"].(map[string]any)
	require.Equal(t, []any{"grpc,least-waste", "here:1", "/ca.crt"},
		[]any{args["expander"], args["grpc-expander-url"], args["grpc-expander-cert"]})
}
