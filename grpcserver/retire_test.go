package grpcserver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// An operation with an unknown outcome may still book an instance. The removed group stays, because otherwise the
// instance would belong to no group.
func TestRemovedGroupStaysWhileAnOutcomeIsUnknown(t *testing.T) {
	g := newGroup(&terms{spec: spec("cpu", 0, 10), retired: true})
	require.NoError(t, g.storeSnapshot(fleet.Snapshot{Group: "cpu", Epoch: "t1", Revision: 1}, time.Now()))
	require.True(t, g.isGone())
	g.markUnknown(time.Now().Add(time.Hour))
	require.False(t, g.isGone())
}
