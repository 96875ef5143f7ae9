package activities_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A pass finds that this cluster has no free capacity for a gateway. The pass immediately reports this to the
// provider's entity, unless the entity has already published this fault.
func TestMissingRoomIsReportedImmediately(t *testing.T) {
	lacks := &backend.StageError{Stage: backend.StageGatewayClient, Message: "NoRoomForGateway: pod gw-milan",
		Err: fmt.Errorf("%w (%w)", context.DeadlineExceeded, backend.ErrNoRoom)}
	m, entities := &messages{}, running()
	a := &activities.Activities{Backend: &world{verb: fails(lacks)}, Messages: m, Entities: entities}
	in := fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"}}
	_, f := activities.VerdictOf(ended(t, a.Establish, in), "milan")
	require.Equal(t, fleet.CodeNoRoom, f.Code)
	require.Equal(t, []fleet.HoldRequest{{Kind: fleet.HoldNoRoom,
		Message: "waiting for gateway-client: NoRoomForGateway: pod gw-milan"}}, m.holds)

	entities.providers[0].Standing.Fault = fleet.ConditionNoRoomForGateway
	require.Error(t, ended(t, a.Establish, in))
	require.Len(t, m.holds, 1, "it is published")
	a.Backend, entities.providers[0].Standing.Fault = &world{verb: fails(backend.ErrUnreachable)}, ""
	require.Error(t, ended(t, a.Establish, in))
	require.Len(t, m.holds, 1, "it is the provider that does not answer")
}
