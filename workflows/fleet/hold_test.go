package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func offer(linger int64) fleet.Offer {
	lendable := shape("4")
	lendable[corev1.ResourceMemory], lendable[corev1.ResourcePods] = resource.MustParse("64Gi"), resource.MustParse("1k")
	return fleet.Offer{Name: "milan", Provider: "milan", Lendable: lendable, LingerSeconds: &linger}
}

func provider() *fleet.ProviderState {
	p := fleet.NewProviderState("milan", t0)
	return &p
}

func TestHoldsShareOnePeering(t *testing.T) {
	p := provider()
	small := shape("1")
	require.Equal(t, fleet.HoldWaiting, p.Acquire("a-1", nil, offer(0), t0).State)
	require.Equal(t, fleet.Establishing, p.Phase)
	require.Equal(t, fleet.HoldWaiting, p.Acquire("b-1", nil, offer(0), t0).State)
	p.Apply(fleet.PeeringDone, nil, t0)
	require.Equal(t, fleet.Established, p.Phase)
	require.Equal(t, fleet.HoldGranted, p.Holds["a-1"].State)
	require.Equal(t, fleet.HoldGranted, p.Holds["b-1"].State)
	require.Equal(t, fleet.HoldGranted, p.Acquire("c-1", small, offer(0), t0).State)
}

func TestAcquireIsIdempotentAndATombstoneHolds(t *testing.T) {
	p := provider()
	p.Release("late-1", t0)
	require.Equal(t, fleet.HoldReleased, p.Acquire("late-1", nil, offer(0), t0).State, "a late acquire must not revive a released attempt")
	require.Equal(t, fleet.Absent, p.Phase)
	p.Acquire("a-1", shape("2"), offer(0), t0)
	p.Acquire("a-1", shape("2"), offer(0), t0)
	require.Equal(t, 1, p.Live())
	p.Sweep(t0.Add(2 * time.Hour))
	require.NotContains(t, p.Holds, "late-1")
	require.Contains(t, p.Holds, "a-1", "a live hold is never forgotten")
}

func TestAcquireRefusesWhatDoesNotFitAndSaysWhatIsFree(t *testing.T) {
	p := provider()
	require.Equal(t, fleet.HoldWaiting, p.Acquire("a-1", shape("3"), offer(0), t0).State)
	h := p.Acquire("b-1", shape("2"), offer(0), t0)
	require.Equal(t, fleet.HoldRefused, h.State)
	require.Equal(t, fleet.CodeNoCapacity, h.Failure.Code)
	require.Contains(t, h.Failure.Message, "needs cpu 2, 1 is free")
	require.Equal(t, int64(1), h.Free.Cpu().Value())
	one := offer(0)
	one.MaxNodes = 1
	h = p.Acquire("c-1", shape("1"), one, t0)
	require.Equal(t, fleet.HoldRefused, h.State)
	require.Contains(t, h.Failure.Message, "all 1 nodes it lends are taken")
}

func TestFailedPeeringRefusesTheWaitingFirst(t *testing.T) {
	p := provider()
	p.Acquire("a-1", shape("1"), offer(0), t0)
	why := &fleet.Failure{Code: fleet.CodeCancelled, Message: "cancelled by an operator"}
	p.Apply(fleet.PeeringFailed, why, t0)
	require.Equal(t, fleet.Compensating, p.Phase)
	require.Equal(t, fleet.HoldRefused, p.Holds["a-1"].State)
	require.Equal(t, why, p.Holds["a-1"].Failure)
	h := p.Acquire("b-1", shape("1"), offer(0), t0)
	require.Equal(t, fleet.HoldRefused, h.State)
	require.Contains(t, h.Failure.Message, "Compensating")
	p.Apply(fleet.PeeringDone, nil, t0)
	require.Equal(t, fleet.CoolOff, p.Phase)
	require.Equal(t, t0.Add(15*time.Second), p.NextTimer())
	p.Apply(fleet.PeeringElapsed, nil, t0.Add(15*time.Second))
	require.Equal(t, fleet.Absent, p.Phase)
}

func TestCoolOffGrowsWithFailuresAndIsBounded(t *testing.T) {
	p := provider()
	p.Phase = fleet.CoolOff
	last := time.Duration(0)
	for n := 1; n < 40; n++ {
		p.Failures = n
		d := p.NextTimer().Sub(p.Since)
		require.GreaterOrEqual(t, d, last)
		require.LessOrEqual(t, d, 10*time.Minute)
		last = d
	}
	require.Equal(t, 10*time.Minute, last)
}

func TestLastHoldLingersThenRemoves(t *testing.T) {
	p := provider()
	p.Acquire("a-1", shape("1"), offer(60), t0)
	p.Apply(fleet.PeeringDone, nil, t0)
	p.Release("a-1", t0)
	require.Equal(t, fleet.Lingering, p.Phase)
	require.Equal(t, t0.Add(time.Minute), p.NextTimer())
	require.Equal(t, fleet.HoldGranted, p.Acquire("b-1", shape("1"), offer(60), t0).State, "a lingering peering serves at once")
	require.Equal(t, fleet.Established, p.Phase)
	p.Release("b-1", t0)
	p.Apply(fleet.PeeringElapsed, nil, t0)
	require.Equal(t, fleet.Removing, p.Phase)
	require.Equal(t, fleet.HoldWaiting, p.Acquire("c-1", shape("1"), offer(60), t0).State)
	require.Equal(t, t0.Add(fleet.RemovalWait), p.NextTimer())
	p.Apply(fleet.PeeringDone, nil, t0)
	require.Equal(t, fleet.Establishing, p.Phase, "someone waited for the removal: peer again")
}

func TestRemovalGivesWayToOthers(t *testing.T) {
	p := provider()
	p.Acquire("a-1", shape("1"), offer(0), t0)
	p.Apply(fleet.PeeringDone, nil, t0)
	p.Release("a-1", t0)
	p.Apply(fleet.PeeringElapsed, nil, t0)
	p.Apply(fleet.PeeringInUse, nil, t0)
	require.Equal(t, fleet.Lingering, p.Phase)
	require.Equal(t, t0.Add(5*time.Minute), p.NextTimer(), "tried again later")
}

func TestUnpeerNeverAndRecoveredPeeringsStay(t *testing.T) {
	p := provider()
	keep := offer(0)
	keep.Unpeer = fleet.UnpeerNever
	p.Acquire("a-1", shape("1"), keep, t0)
	p.Apply(fleet.PeeringDone, nil, t0)
	p.Release("a-1", t0)
	require.True(t, p.NextTimer().IsZero())

	p = provider()
	p.Phase, p.KeepUntil = fleet.Lingering, t0.Add(5*time.Minute)
	o := offer(0)
	p.Offer = &o
	require.Equal(t, t0.Add(5*time.Minute), p.NextTimer())
}

func TestFailedRepairRemovesNothingWhileHeld(t *testing.T) {
	p := provider()
	p.Acquire("a-1", shape("1"), offer(0), t0)
	p.Apply(fleet.PeeringDone, nil, t0)
	p.Apply(fleet.PeeringBroken, nil, t0)
	require.Equal(t, fleet.Repairing, p.Phase)
	require.Equal(t, fleet.HoldWaiting, p.Acquire("b-1", shape("1"), offer(0), t0).State)
	p.Apply(fleet.PeeringFailed, &fleet.Failure{Code: fleet.CodeTimeout}, t0)
	require.Equal(t, fleet.Established, p.Phase)
	require.Equal(t, fleet.HoldGranted, p.Holds["a-1"].State)
	require.Equal(t, fleet.HoldRefused, p.Holds["b-1"].State)
}
