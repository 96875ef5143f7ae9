package config

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestGroupsInheritTheDefaults(t *testing.T) {
	cfg, err := Parse([]byte(`
limits: {nodes: 20, cpu: 80, memory: 160Gi}
defaults:
  min: 1
  max: 5
  shape: {cpu: 2, memory: 4Gi, pods: 110}
  labels: {tier: burst, team: a}
  taints: [{key: burst, effect: NoSchedule}]
  groupTaint: PreferNoSchedule
  nodes: machine
  selector: {matchLabels: {region: eu}}
  budgets: {peer: 60s, drain: 5m}
nodeGroups:
- id: plain
- id: own
  min: 0
  max: 2
  shape: {cpu: 8, nvidia.com/gpu: 1}
  labels: {team: b, gpu: "yes"}
  taints: []
  groupTaint: NoExecute
  nodes: virtual
  selector: {}
  budgets: {peer: 30s}
- id: untainted
  groupTaint: ""
- id: nothing-said
  min: null
  labels: null
`))
	require.NoError(t, err)
	require.Nil(t, cfg.Defaults)
	require.Equal(t, 20, *cfg.Limits.Nodes)
	require.Equal(t, "80", cfg.Limits.CPU.String())
	require.Equal(t, "160Gi", cfg.Limits.Memory.String())

	plain, own, nothing := cfg.NodeGroups[0], cfg.NodeGroups[1], cfg.NodeGroups[3]
	require.Equal(t, 1, plain.Min)
	require.Equal(t, 5, plain.Max)
	require.Equal(t, "4Gi", plain.Shape.Memory().String())
	require.Equal(t, map[string]string{"tier": "burst", "team": "a"}, plain.Labels)
	require.Len(t, plain.spec().NodeTaints(), 2)
	require.Equal(t, fleet.NodesMachine, plain.Nodes)
	require.Empty(t, own.Nodes, "said or not, virtual is the same template")
	require.Equal(t, map[string]string{"region": "eu"}, plain.Selector.MatchLabels)
	require.Equal(t, time.Minute, plain.Budgets.Peer.Duration)
	require.Equal(t, 5*time.Minute, plain.Budgets.Drain.Duration)
	require.Equal(t, 2*time.Minute, plain.Budgets.Join.Duration, "what the defaults leave out has the built-in default")

	require.Zero(t, own.Min, "a zero that is said is said")
	require.Equal(t, 2, own.Max)
	require.Equal(t, "8", own.Shape.Cpu().String())
	require.Equal(t, "4Gi", own.Shape.Memory().String())
	require.Len(t, own.Shape, 4)
	require.Equal(t, map[string]string{"tier": "burst", "team": "b", "gpu": "yes"}, own.Labels)
	require.Equal(t, []corev1.Taint{{Key: fleet.LabelGroup, Value: "own", Effect: corev1.TaintEffectNoExecute}},
		own.spec().NodeTaints())
	require.Empty(t, own.Selector.MatchLabels)
	require.Equal(t, 30*time.Second, own.Budgets.Peer.Duration)
	require.Equal(t, 5*time.Minute, own.Budgets.Drain.Duration)

	require.Len(t, cfg.NodeGroups[2].spec().NodeTaints(), 1, "empty is said")
	plain.ID, nothing.ID = "", ""
	require.Equal(t, plain, nothing, "null is not said")
	require.Len(t, plain.Labels, 2, "groups do not share maps")
}

// Each size inherits the missing resources of its shape from the defaults. The group itself inherits no shape.
func TestSizesInheritTheDefaultShape(t *testing.T) {
	cfg, err := Parse([]byte(`
defaults: {max: 5, shape: {cpu: 2, memory: 4Gi, pods: 110}, labels: {tier: burst}}
nodeGroups:
- id: burst
  sizes: [{name: small}, {name: large, shape: {cpu: 8, memory: 32Gi}, priceFactor: 3.5}]
- id: plain
`))
	require.NoError(t, err)
	burst := cfg.NodeGroups[0]
	require.Nil(t, burst.Shape)
	require.Equal(t, 5, burst.Max)
	require.Equal(t, map[string]string{"tier": "burst"}, burst.Labels)
	small, large := burst.Sizes[0], burst.Sizes[1]
	require.Equal(t, []string{"2", "8"}, []string{small.Shape.Cpu().String(), large.Shape.Cpu().String()})
	require.Equal(t, "110", large.Shape.Pods().String())
	require.Equal(t, []float64{0, 3.5}, []float64{small.PriceFactor, large.PriceFactor})
	require.Equal(t, "2", cfg.NodeGroups[1].Shape.Cpu().String())
}

// The minPerGroup of each size counts against the limits.
func TestMinPerGroupOfSizesCountsAgainstLimits(t *testing.T) {
	const text = "limits: {cpu: %d}\nnodeGroups: [{id: a, max: 3, minPerGroup: 2, sizes: [" +
		"{name: s, shape: {cpu: 2, memory: 4Gi, pods: 10}}, {name: l, shape: {cpu: 8, memory: 32Gi, pods: 10}}]}]"
	_, err := Parse([]byte(fmt.Sprintf(text, 20)))
	require.NoError(t, err)
	_, err = Parse([]byte(fmt.Sprintf(text, 19)))
	require.ErrorContains(t, err, "limits.cpu: is 19, less than the min of all groups together (20)")
}

// The output of `config view` parses to the same config.
func TestConfigViewParsesToTheSameConfig(t *testing.T) {
	for _, raw := range []string{good, "nodeGroups: [{id: a, max: 1, sizes: [{name: s, shape: {cpu: 1, memory: 1Gi, " +
		"pods: 1}, priceFactor: 0.5}]}]", "defaults: {max: 3, groupTaint: NoSchedule}\nlimits: {cpu: 7500m}\nnodeGroups: " +
		"[{id: a, shape: {cpu: 1, memory: 1Gi, pods: 1}}]"} {
		cfg, err := Parse([]byte(raw))
		require.NoError(t, err)
		printed, err := yaml.Marshal(cfg)
		require.NoError(t, err)
		again, err := Parse(printed)
		require.NoError(t, err)
		for i := range cfg.NodeGroups {
			require.Equal(t, cfg.NodeGroups[i].spec().Hash(), again.NodeGroups[i].spec().Hash())
		}
		require.Equal(t, cfg.Hub, again.Hub)
		printedAgain, err := yaml.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(printed), string(printedAgain))
	}
}

// An element of the list of groups that is not a map inherits nothing from the defaults, and is an error.
func TestInvalidGroupInheritsNothing(t *testing.T) {
	_, err := Parse([]byte("defaults: {max: 5, shape: {cpu: 2}}\nnodeGroups: [plain, null, {id: own}]\n"))
	require.ErrorContains(t, err, "nodeGroups[0]")
}
