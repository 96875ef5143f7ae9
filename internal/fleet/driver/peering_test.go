package driver_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
)

// When a provider refuses a hold, the instance searches for another provider. It may choose the same provider again
// only after NoCapacity.
func TestOnlyNoCapacityKeepsAProviderEligible(t *testing.T) {
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, code := range fleet.Codes {
		d := driver.New(fleet.DriverInput{Spec: fleet.InstanceSpec{ID: "a"}, Instance: fleet.Instance{Name: "a-t0-1",
			Phase: fleet.Peering, Attempt: 1, BookedAt: t0, Offer: &fleet.Offer{Provider: "milan"}}}, t0)
		d.Step(driver.Event{Answer: &fleet.Answer{Key: "lca-a-t0-1-1", Provider: "milan", State: fleet.HoldRefused,
			Failure: fleet.NewFailure(code, "milan", "", "no")}}, t0)
		require.Equal(t, fleet.Discovering, d.Instance.Phase, code)
		require.Equal(t, code, d.Instance.Failure.Code)
		if code == fleet.CodeNoCapacity {
			require.Empty(t, d.Instance.Refused, code)
			require.Equal(t, t0, d.FullSince, code)
		} else {
			require.Equal(t, []string{"milan"}, d.Instance.Refused, code)
			require.Zero(t, d.FullSince, code)
		}
	}
}
