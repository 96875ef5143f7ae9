package backendtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Run checks every promise of backend.Backend. If no subtest fails, the providers have no object of ours when Run
// returns.
func Run(t *testing.T, h Harness) {
	require.NotNil(t, h.Backend, "Harness.Backend")
	require.NotNil(t, h.World.Objects, "World.Objects")
	require.NotNil(t, h.World.Node, "World.Node")
	s := &suite{Harness: h.withDefaults(), epoch: fleet.NewEpoch(time.Now())}
	t.Cleanup(func() { s.clear(t) })

	// These subtests need no peering.
	t.Run("Identify", s.testIdentify)
	t.Run("IdentifyBroken", s.testIdentifyBroken)
	t.Run("IdentifyUnreachable", s.testIdentifyUnreachable)
	t.Run("JoinWithoutPeering", s.testJoinWithoutPeering)
	t.Run("RemoveAbsent", s.testRemoveAbsent)
	t.Run("ObserveUnpeered", s.testObserveUnpeered)

	// The subtests up to UnpeerLeavesNothing share the first provider's peering.
	t.Run("EstablishCancelledResumes", s.testEstablishCancelled)
	t.Run("EstablishTwiceAdopts", s.testEstablishTwice)
	t.Run("Peers", s.testPeers)
	t.Run("JoinOtherKind", s.testJoinOtherKind)
	t.Run("JoinCancelledResumes", s.testJoinCancelled)
	t.Run("JoinMakesNode", s.testJoinMakesNode)
	t.Run("JoinTwiceAdopts", s.testJoinTwice)
	t.Run("JoinConflict", s.testJoinConflict)
	t.Run("List", s.testList)
	t.Run("Observe", s.testObserve)
	t.Run("ObserveWhileCut", s.testObserveWhileCut)
	t.Run("Cordon", s.testCordon)
	t.Run("TwoNodesOnePeering", s.testTwoNodes)
	t.Run("UnpeerInUse", s.testUnpeerInUse)
	t.Run("DrainEvicts", s.testDrainEvicts)
	t.Run("DrainForce", s.testDrainForce)
	t.Run("LeaveRemovesBothSides", s.testLeave)
	t.Run("LeaveHeldPod", s.testLeaveHeldPod)
	t.Run("LeaveTwice", s.testLeaveTwice)
	t.Run("WatchTellsAll", s.testWatchTellsAll)
	t.Run("WatchFollows", s.testWatchFollows)
	t.Run("RestampDeletedNode", s.testRestampDeletedNode)
	t.Run("RestampLeavesAlone", s.testRestampLeavesAlone)
	t.Run("RestampForeignNode", s.testRestampForeignNode)
	t.Run("WatchVirtualNodeDeleted", s.testWatchVirtualNodeDeleted)
	t.Run("WatchSliceDeleted", s.testWatchSliceDeleted)
	t.Run("SecondAttemptStampsLast", s.testSecondAttempt)
	t.Run("SecondAttemptBesideFirst", s.testSecondAttemptBesideFirst)
	t.Run("JoinDenied", s.testJoinDenied)
	t.Run("JoinShort", s.testJoinShort)
	t.Run("JoinFull", s.testJoinFull)
	t.Run("LeaveWhileCut", s.testLeaveWhileCut)
	t.Run("UnpeerForeignSlice", s.testUnpeerForeignSlice)
	t.Run("UnpeerLeavesNothing", s.testUnpeer)

	// These subtests make their own peerings.
	t.Run("ForeignPeering", s.testForeignPeering)
	t.Run("EstablishCutInNetwork", s.testEstablishCutInNetwork)
	t.Run("EstablishStalled", s.testEstablishStalled)
	t.Run("EstablishWhileCut", s.testEstablishWhileCut)
	t.Run("UnpeerWhileCut", s.testUnpeerWhileCut)
	t.Run("RefusalIsKept", s.testRefusalKept)
	t.Run("RefusedJoin", s.testRefusedJoin)
	t.Run("RemovedRefuses", s.testRemovedRefuses)
	t.Run("Leftovers", s.testLeftovers)
	t.Run("Passes", s.testPasses)
	t.Run("PassesWhileCut", s.testPassesWhileCut)
	t.Run("AtRest", s.testAtRest)
}

// clear removes, as far as the backend can, the objects that an earlier run has left. A run leaves objects if it
// fails, or if it runs only some subtests.
func (s *suite) clear(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*s.Bound)
	defer cancel()
	found, err := s.Backend.List(ctx, backend.Scope{Group: s.Group})
	if err != nil {
		t.Logf("clear: list: %v", err)
	}
	for _, f := range found {
		if err := s.Backend.Return(ctx, f.Attempt, nil); err != nil {
			t.Logf("clear: leave %s: %v", f.Attempt.ObjectName(), err)
		}
	}
	for _, p := range s.Providers {
		if err := s.Backend.RemovePeering(ctx, p, nil); err != nil {
			t.Logf("clear: unpeer %s: %v", p.ID, err)
		}
	}
}
