package fleet_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The tables name only phases and events that exist, and each phase once.
func TestTablesNameExistingPhasesAndEvents(t *testing.T) {
	require.Len(t, fleet.Machine, 10)
	for _, row := range fleet.Machine {
		require.Equal(t, row, row.Phase.Row(), "phase %s twice", row.Phase)
		for k, m := range row.Moves {
			require.Contains(t, fleet.EventKinds, k, "phase %s", row.Phase)
			require.False(t, m.Ignored, "%s in %s is ignored and yet named", k, row.Phase)
			require.True(t, m.To == "" || isPhase(m.To), "%s in %s leads to unknown %q", k, row.Phase, m.To)
		}
	}
	require.Len(t, fleet.PeeringMachine, 9)
	for _, row := range fleet.PeeringMachine {
		require.Equal(t, row, row.Phase.Row(), "phase %s twice", row.Phase)
		for k, m := range row.Moves {
			require.Contains(t, fleet.PeeringEvents, k, "phase %s", row.Phase)
			for _, next := range []fleet.PeeringPhase{m.To, m.ToEmpty, m.ToRefused} {
				require.True(t, next == "" || next.Row().Moves != nil, "%s leads to unknown %q", row.Phase, next)
			}
		}
	}
}

func isPhase(p fleet.Phase) bool {
	return slices.ContainsFunc(fleet.Machine, func(r fleet.Row) bool { return r.Phase == p })
}

// The test lists, for each phase in which CA may call DeleteNodes, the phases that follow when every step succeeds.
func TestDeletionLeadsToReleasedFromEveryPhase(t *testing.T) {
	for _, row := range fleet.Machine {
		p, path := row.Phase, []fleet.Phase{row.Phase}
		if m := row.Moves[fleet.Deleted]; m.To != "" {
			p = m.To
		}
		for p != fleet.Released {
			p = p.Row().Moves[fleet.Done].To
			path = append(path, p)
			require.True(t, p.Shrinking() || p == fleet.Released, "a released instance goes %v", path)
			require.Less(t, len(path), 5)
		}
	}
}

// The test lists the intended moves, each with its reason. The golden file of the documentation shows only the actual
// moves.
func TestMachineMatchesTheIntendedMoves(t *testing.T) {
	type ends = map[fleet.EventKind]fleet.Move
	undo, away := fleet.Move{To: fleet.Failed, Undo: true}, fleet.Move{To: fleet.Discovering, Blame: true, Undo: true}
	to := func(p fleet.Phase) fleet.Move { return fleet.Move{To: p} }
	ignored := fleet.Move{Ignored: true}
	for phase, want := range map[fleet.Phase]ends{
		// In this phase the deadline fails the instance. In Peering it is ignored, because a provider already works.
		fleet.Pending: {fleet.Done: to(fleet.Discovering), fleet.Deadline: to(fleet.Failed),
			fleet.Cancelled: to(fleet.Failed)},
		fleet.Discovering: {fleet.Deadline: to(fleet.Failed), fleet.Cancelled: to(fleet.Failed),
			fleet.Refused: to(fleet.Failed)},
		// A full provider is not a refusal: the driver searches again.
		fleet.Selecting: {fleet.Again: to(fleet.Discovering), fleet.Refused: to(fleet.Failed),
			fleet.Deadline: to(fleet.Failed)},
		// After a refusal for lack of capacity, or after silence, the instance may choose the provider again. There is
		// nothing to undo.
		fleet.Peering: {fleet.Again: to(fleet.Discovering), fleet.Refused: {To: fleet.Discovering, Blame: true},
			fleet.Deadline: ignored, fleet.Cancelled: to(fleet.Failed)},
		fleet.Joining: {fleet.Refused: away, fleet.GaveUp: away, fleet.Cancelled: undo, fleet.Deadline: ignored,
			fleet.Registered: {}, fleet.Lost: ignored},
		fleet.Ready: {fleet.Lost: {To: fleet.Draining, Force: true}, fleet.Deleted: to(fleet.Draining), fleet.Done: ignored,
			fleet.Refused: ignored, fleet.Cancelled: ignored, fleet.Deadline: ignored, fleet.NotReady: {}},
		// The slice is returned regardless of the result of the drain. Only an operator can stop the return.
		fleet.Draining: {fleet.GaveUp: {To: fleet.Unpeering, Force: true}, fleet.Refused: {To: fleet.Unpeering, Force: true},
			fleet.Cancelled: {Stuck: true}, fleet.Lost: {Force: true}},
		fleet.Unpeering: {fleet.Done: to(fleet.Released), fleet.Refused: ignored, fleet.GaveUp: ignored,
			fleet.Cancelled: {Stuck: true}},
		fleet.Failed: {fleet.Expired: to(fleet.Released), fleet.Deleted: to(fleet.Released), fleet.Done: ignored,
			fleet.Registered: ignored},
	} {
		for kind, m := range want {
			got, named := phase.Row().Moves[kind]
			got.Ignored = !named
			require.Equal(t, m, got, "%s in %s", kind, phase)
		}
	}
	for _, row := range fleet.Machine {
		counts := row.Phase != fleet.Draining && row.Phase != fleet.Unpeering && row.Phase != fleet.Released
		require.Equal(t, counts, row.Counts, "%s", row.Phase)
		for kind, m := range row.Moves {
			require.False(t, m.Undo && row.Phase != fleet.Joining, "%s in %s: nothing was made before Joining", kind, row.Phase)
			require.False(t, row.Phase.Shrinking() && m.To.Row().Counts, "%s in %s resurrects", kind, row.Phase)
		}
	}
}
