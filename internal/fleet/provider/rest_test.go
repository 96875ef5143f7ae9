package provider_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// After each failure of its peering, a provider rests before the next try (phase CoolOff). It does not rest when the
// consumer cluster had no capacity for the peering.
func TestCoolOffDependsOnTheCodeOfTheFailure(t *testing.T) {
	for _, code := range append(fleet.Codes, "Newer") {
		p := provider.New("milan", t0)
		recovered(t, p, false)
		p.Phase = fleet.Establishing
		p.Apply(fleet.PeeringFailed, fleet.NewFailure(code, "milan", "", "no"), t0)
		p.Phase, p.Since = fleet.CoolOff, t0
		rest, failures := 15*time.Second, 1
		if code == fleet.CodeNoRoom {
			rest, failures = 0, 0
		}
		require.Equal(t, failures, p.Failures, code)
		p.Step(provider.Input{}, t0.Add(rest-time.Nanosecond))
		require.Equal(t, fleet.CoolOff, p.Phase, code)
		p.Step(provider.Input{}, t0.Add(rest))
		require.NotEqual(t, fleet.CoolOff, p.Phase, code)
	}
}
