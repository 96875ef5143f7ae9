package provider_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// An offer's maximum counts nodes. A standby is a peering without a node, so it gets a hold even when all nodes of the
// offer are taken.
func TestStandbyIsGrantedWhenAllNodesAreTaken(t *testing.T) {
	p := provider.New("milan", t0)
	recovered(t, p, false)
	offer := &fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable(9), MaxNodes: 1}
	node, standby := "lca-a-t0-1-1", fleet.StandbyKey("a", "t0", 1)
	for _, key := range []string{node, standby, "lca-a-t0-2-1"} {
		p.Step(provider.Input{Requests: []fleet.HoldRequest{{Kind: fleet.HoldAcquire, Key: key, Shape: shape("1"),
			Offer: offer}}}, t0)
	}
	require.Equal(t, fleet.HoldWaiting, p.Holds[node].State)
	require.Equal(t, fleet.HoldWaiting, p.Holds[standby].State)
	require.Equal(t, fleet.HoldRefused, p.Holds["lca-a-t0-2-1"].State)
}
