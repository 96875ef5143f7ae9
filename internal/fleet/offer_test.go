package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// An unused peering is kept for a minute by default, as docs/offers.md states.
func TestDefaultLingerIsAMinute(t *testing.T) {
	require.Equal(t, time.Minute, fleet.Offer{}.Linger())
	seconds := int64(90)
	require.Equal(t, 90*time.Second, fleet.Offer{LingerSeconds: &seconds}.Linger())
	seconds = 0
	require.Zero(t, fleet.Offer{LingerSeconds: &seconds}.Linger())
}
