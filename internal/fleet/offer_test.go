package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The time for which an unused peering is kept: docs/offers.md promises a minute.
func TestLinger(t *testing.T) {
	require.Equal(t, time.Minute, fleet.Offer{}.Linger())
	seconds := int64(90)
	require.Equal(t, 90*time.Second, fleet.Offer{LingerSeconds: &seconds}.Linger())
	seconds = 0
	require.Zero(t, fleet.Offer{LingerSeconds: &seconds}.Linger())
}
