package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// The hold of a standby does not count as a node in the published state, so the offer allows as many nodes as without
// the standby.
func TestStandbyTakesNoPlace(t *testing.T) {
	now := time.Now()
	p := provider.New("milan", now)
	offer := &fleet.Offer{Name: "m", Provider: "milan", Lendable: lendable(5), MaxNodes: 1}
	key := fleet.StandbyKey("g", "e", 1)
	acquire := func(key string) {
		p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldAcquire, Key: key, Offer: offer}}}, now)
	}
	acquire(key)
	s := p.Snapshot(now)
	require.Empty(t, s.Holds)
	require.Equal(t, map[string]fleet.HoldState{key: fleet.HoldWaiting}, s.Standby)
	require.Equal(t, 0, choice.CandidateOf(*offer, s).Nodes)
	acquire("lca-g-e-1-1")
	require.Equal(t, []string{"lca-g-e-1-1"}, p.Snapshot(now).Holds)
}
