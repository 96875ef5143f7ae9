package parts

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
)

// noGroups is a hub without running node groups.
type noGroups struct{ grpcserver.Groups }

func (noGroups) Running(context.Context) ([]string, error) { return nil, nil }

// optionsOf returns the options of a server with this config and these flags, and the ids of the groups in the
// options.
func optionsOf(t *testing.T, text string, flags MarketFlags) (o grpcserver.Options, ids []string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodegroups.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	file, cfg, err := config.Open(path)
	require.NoError(t, err)
	offered, err := flags.Reader(cfg.Hub, quiet)
	if err == nil {
		o, err = ServerOptions(t.Context(), file, cfg, offered, noGroups{}, quiet)
	}
	for _, s := range o.Specs {
		ids = append(ids, s.ID)
	}
	return o, ids, err
}

const ladder = `
defaults: {max: 5, shape: {cpu: 2, memory: 4Gi, pods: 110}}
nodeGroups:
- {id: burst, sizes: [{name: small}, {name: large, shape: {cpu: 8, memory: 16Gi}}]}
`

// Groups that are derived only from sizes, and not from offers, need no market.
func TestGroupsBySizeNeedNoMarket(t *testing.T) {
	o, ids, err := optionsOf(t, ladder, MarketFlags{maxDerived: 50})
	require.NoError(t, err)
	require.Equal(t, []string{"burst-small", "burst-large"}, ids)
	require.Nil(t, o.Market)
	_, changed, err := o.Reload()
	require.NoError(t, err)
	require.False(t, changed)

	_, _, err = optionsOf(t, ladder+"- {id: near, per: provider}", MarketFlags{maxDerived: 50})
	require.ErrorContains(t, err, "--market-namespace or --market-file")
}

func TestGroupsAreDerivedFromTheMarket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "market.json")
	room := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"),
		"pods": resource.MustParse("110")}
	require.NoError(t, market.File(path).Save(t.Context(), market.Market{Offers: []market.Offer{
		{Name: "milan", Provider: "milan", Lendable: room, Free: room, Price: 1},
		{Name: "turin", Provider: "turin", Lendable: room, Free: room, Price: 2}}}))
	text := ladder + "- {id: near, per: provider}"
	_, ids, err := optionsOf(t, text, MarketFlags{file: path, maxDerived: 50})
	require.NoError(t, err)
	require.Equal(t, []string{"burst-small", "burst-large", "near-milan", "near-turin"}, ids)
	o, ids, err := optionsOf(t, text, MarketFlags{file: path, maxDerived: 1})
	require.NoError(t, err)
	require.Equal(t, []string{"burst-small", "burst-large", "near-milan"}, ids, "sizes do not count")
	require.Len(t, o.Derived.Refused(), 1)
	_, _, err = optionsOf(t, text, MarketFlags{file: path})
	require.ErrorContains(t, err, "--max-derived-groups 0: give at least 1")
}
