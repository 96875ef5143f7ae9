package fleet_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func TestFactOnTheWire(t *testing.T) {
	fact := fleet.Fact{
		Instance: "edge-t0-1", Attempt: 2, Kind: fleet.NotReady, At: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}
	content, err := json.Marshal(fact)
	require.NoError(t, err)
	require.JSONEq(t, `{"instance":"edge-t0-1","attempt":2,"kind":"notReady","at":"2026-11-20T12:00:00Z"}`, string(content))
	var back fleet.Fact
	require.NoError(t, json.Unmarshal(content, &back))
	require.Equal(t, fact, back)
}
