package setup

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

const before = `
defaults: {max: 3, shape: {cpu: 2, memory: 4Gi, pods: 110}}
nodeGroups:
- {id: same}
- {id: larger}
- {id: shaped}
- {id: unused}
- {id: gone}
- {id: each, per: provider}
`

const after = `
defaults: {max: 3, shape: {cpu: 2, memory: 4Gi, pods: 110}}
nodeGroups:
- {id: same}
- {id: larger, max: 6, priceFactor: 2}
- {id: shaped, max: 4, shape: {cpu: 8, memory: 4Gi, pods: 110}}
- {id: unused, shape: {cpu: 8, memory: 4Gi, pods: 110}}
- {id: new, max: 2}
- {id: each, per: provider, shape: {cpu: 1, memory: 4Gi, pods: 110}}
`

// `config diff` shows the effect of a changed config, for example for a pull request. It also shows the values that
// would have no effect.
func TestConfigDiffShowsTheEffect(t *testing.T) {
	parse := func(text string) config.Config {
		cfg, err := config.Parse([]byte(text))
		require.NoError(t, err)
		return cfg
	}
	room := parse(before).NodeGroups[0].Shape
	m := &market.Market{Offers: []market.Offer{{Name: "milan", Provider: "milan", Lendable: room, Free: room}}}
	var running []fleet.Snapshot
	for _, c := range changesOf(parse(before), nil, m) {
		require.Equal(t, grpcserver.EffectAdded, c.Effect)
	}
	for _, spec := range derivedOf(nil, m).Expand(parse(before).NodeGroups) {
		s := fleet.Snapshot{Group: spec.ID, Spec: &spec, Booked: 1, Instances: make([]fleet.InstanceView, 1)}
		if spec.ID == "unused" {
			s.Booked, s.Instances = 0, nil
		}
		running = append(running, s)
	}
	require.Len(t, running, 6)
	require.Empty(t, changesOf(parse(before), running, m))
	require.Empty(t, changesOf(parse(before), running, nil), "without the market, derived groups are as they run")

	found := changes{Hub: "default", Changes: changesOf(parse(after), running, m)}
	var out bytes.Buffer
	require.NoError(t, found.Table(&out, output.Style{}))
	require.Equal(t, `NODE GROUP   EFFECT             WHAT
each-milan   Replaced           its template changed: it only shrinks, and starts again with the new template when it is empty
gone         Retired            it is no longer in the config: it only shrinks, and ends when it is empty; it has 1 instances
larger       Changed            max: 3 -> 6, priceFactor: (not set) -> 2
new          Added              0 to 2 nodes
shaped       ChangeNotInForce   shape changed, but only in the config: give the changed group a new id, and remove the old `+
		`one; Cluster Autoscaler may use the group's old template until it restarts
shaped       Changed            max: 3 -> 4
unused       Changed            shape: {"cpu":"2","memory":"4Gi","pods":"110"} -> {"cpu":"8","memory":"4Gi","pods":"110"}
`, out.String())
	require.EqualError(t, found.ineffective(), "some values would have no effect on shaped")
	require.NoError(t, changes{Changes: found.Changes[:3]}.ineffective())
	out.Reset()
	require.NoError(t, changes{Hub: "default"}.Table(&out, output.Style{}))
	require.Equal(t, "hub default: the config changes no node group\n", out.String())
}
