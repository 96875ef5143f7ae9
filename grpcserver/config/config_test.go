package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/strictyaml"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

const good = `
hub: munich
nodeGroups:
- id: cpu
  min: 1
  max: 10
  shape: {cpu: 4, memory: 8Gi, pods: "110", ephemeral-storage: 20Gi}
  labels: {tier: burst, example.com/team: a}
  taints: [{key: burst, value: "true", effect: NoSchedule}]
  selector: {matchLabels: {region: eu}, matchExpressions: [{key: tier, operator: In, values: [a, b]}]}
  budgets: {peer: 60s, total: 10m, unready: 0}
- id: gpu
  max: 2
  shape: {cpu: 500m, memory: 8Gi, pods: 20, nvidia.com/gpu: 1}
`

func TestConfigIsParsed(t *testing.T) {
	cfg, err := Parse([]byte(good))
	require.NoError(t, err)
	require.Equal(t, "munich", cfg.Hub)
	require.Len(t, cfg.NodeGroups, 2)

	cpu, gpu := cfg.NodeGroups[0], cfg.NodeGroups[1]
	require.Equal(t, "cpu", cpu.ID)
	require.Equal(t, 1, cpu.Min)
	require.Equal(t, 10, cpu.Max)
	require.True(t, cpu.Shape[corev1.ResourceCPU].Equal(resource.MustParse("4")))
	require.Equal(t, []corev1.Taint{{Key: "burst", Value: "true", Effect: corev1.TaintEffectNoSchedule}}, cpu.Taints)
	require.Equal(t, []string{"a", "b"}, cpu.Selector.MatchExpressions[0].Values)
	require.Equal(t, 60*time.Second, cpu.Budgets.Peer.Duration)
	require.Equal(t, 2*time.Minute, cpu.Budgets.Join.Duration, "a default")
	require.Equal(t, 10*time.Minute, cpu.Budgets.Total.Duration)
	require.Zero(t, cpu.Budgets.Unready.Duration.Duration, "0 is never, and no default")
	require.Equal(t, 30*time.Minute, cpu.Budgets.Isolated.Duration.Duration)
	require.Equal(t, 5*time.Minute, gpu.Budgets.Unready.Duration.Duration)
	require.True(t, gpu.Shape["nvidia.com/gpu"].Equal(resource.MustParse("1")))
	require.Equal(t, 12*time.Minute, gpu.Budgets.Total.Duration)
}

func TestHubDefaults(t *testing.T) {
	cfg, err := Parse([]byte(strings.Replace(good, "hub: munich", "", 1)))
	require.NoError(t, err)
	require.Equal(t, fleet.DefaultHub, cfg.Hub)
}

// The hash decides whether a group is configured again. The spelling of a quantity or duration must therefore not
// change it.
func TestHashDoesNotDependOnSpelling(t *testing.T) {
	one, err := Parse([]byte("nodeGroups: [{id: a, max: 1, shape: {cpu: 4, memory: 1024Mi, pods: 10}, budgets: {peer: " +
		"90s}}]"))
	require.NoError(t, err)
	two, err := Parse([]byte("nodeGroups: [{max: 1, id: a, shape: {pods: '10', cpu: 4000m, memory: 1Gi}, budgets: " +
		"{peer: 1m30s}}]"))
	require.NoError(t, err)
	require.Equal(t, one.NodeGroups[0].spec().Hash(), two.NodeGroups[0].spec().Hash())
}

// Each testdata/<name>.yaml is a broken config. <name>.txt contains all its errors with their paths.
func TestBrokenConfigsReportAllErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			_, err = Parse(raw)
			require.Error(t, err)
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// The YAML library reads the first document of a file and silently ignores any other. Limits in a later document would
// have no effect, so such a file is refused.
func TestSecondDocumentIsRefused(t *testing.T) {
	const flow = "{nodeGroups: [{id: a, max: 1, shape: {cpu: 4, memory: 8Gi, pods: 10}}]}\n"
	for _, raw := range []string{good + "...\nlimits: {nodes: 1}\n", flow + "limits: {nodes: 1}\n", flow + "{", good +
		"---\nlimits: {nodes: 1}\n"} {
		_, err := Parse([]byte(raw))
		require.ErrorContains(t, err, "more than one YAML document", raw)
	}
	for _, raw := range []string{good + "...\n", flow, "---" + good} {
		_, err := Parse([]byte(raw))
		require.NoError(t, err, raw)
	}
}

// Aliases of one long text can expand a small file to gigabytes, and the kernel would kill a server that reads it.
// Parse refuses such aliases.
func TestExpandingAliasesAreRefused(t *testing.T) {
	_, err := Parse([]byte("hub: &a " + strings.Repeat("a", 20_000) + "\nnodeGroups: [" + strings.Repeat("*a,", 2_000) +
		"]\n"))
	require.EqualError(t, err, strictyaml.ErrAliases.Error())
	_, err = Parse([]byte(strings.Replace(good, "shape: {cpu: 500m", "budgets: &b {peer: 1s}\n  shape: {cpu: 500m", 1) +
		"- {id: third, max: 1, shape: {cpu: 1, memory: 1Gi, pods: 1}, budgets: *b}\n"))
	require.NoError(t, err)
}

func TestConfigIsLoadedFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "groups.yaml")
	require.NoError(t, os.WriteFile(file, []byte(good), 0o600))
	cfg, err := Load(file)
	require.NoError(t, err)
	require.Len(t, cfg.NodeGroups, 2)

	require.NoError(t, os.WriteFile(file, []byte("nodeGroups: []"), 0o600))
	_, err = Load(file)
	require.ErrorContains(t, err, file+":\nnodeGroups: is missing")

	for text, says := range map[string]string{
		"offers: []":                 "this is a file of offers: `liqo-autoscaler offers validate` checks it",
		"offers: []\nnodeGroups: []": "these are values of the Helm chart: `helm lint CHART --values FILE` checks them",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err = Load(file)
		require.EqualError(t, err, "read node groups from "+file+":\n"+says)
	}

	_, err = Load(file + ".absent")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Parse returns for any input. An accepted config has the properties on which the server relies.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("nodeGroups: [{shape: {cpu: 1e9999999999}}]"))
	f.Add([]byte("{? [a]: b}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		cfg, err := Parse(raw)
		if err != nil {
			return
		}
		require.NotEmpty(t, cfg.Hub)
		require.NotEmpty(t, cfg.NodeGroups)
		for _, g := range cfg.NodeGroups {
			require.NotEmpty(t, g.ID)
			require.GreaterOrEqual(t, g.Max, g.Min)
			for _, derived := range g.Bases() {
				require.True(t, fleet.ValidGroupID(derived.ID), derived.ID)
				require.NotEmpty(t, derived.Shape[corev1.ResourcePods])
			}
			require.Positive(t, g.Budgets.Total.Duration)
		}
	})
}
