package fleet_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMatrixIsAsDocumented(t *testing.T) {
	const golden = "testdata/matrix.md"
	got := fleet.Matrix()
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err, "run go test ./workflows/fleet -update")
	require.Equal(t, string(want), got)
}

func TestEveryPhaseDefinesEveryEvent(t *testing.T) {
	phases := map[fleet.Phase]bool{}
	for _, row := range fleet.Machine {
		require.False(t, phases[row.Phase], "phase %s twice", row.Phase)
		phases[row.Phase] = true
		require.Len(t, row.Moves, len(fleet.EventKinds), "phase %s", row.Phase)
		for _, k := range fleet.EventKinds {
			m, ok := row.Moves[k]
			require.True(t, ok, "phase %s does not define %s", row.Phase, k)
			if m.Ignored {
				require.Equal(t, fleet.Move{Ignored: true}, m, "phase %s, event %s: ignored and yet does something", row.Phase, k)
			}
			require.False(t, m.Lap && m.To != "", "phase %s, event %s: a lap decides its own end", row.Phase, k)
		}
	}
	require.Len(t, phases, 10)
	for _, row := range fleet.Machine {
		for k, m := range row.Moves {
			if m.To != "" {
				require.True(t, phases[m.To], "phase %s, event %s leads to unknown %q", row.Phase, k, m.To)
			}
		}
	}
}

func TestEveryPeeringPhaseDefinesEveryEvent(t *testing.T) {
	phases := map[fleet.PeeringPhase]bool{}
	for _, row := range fleet.PeeringMachine {
		phases[row.Phase] = true
	}
	require.Len(t, phases, 8)
	for _, row := range fleet.PeeringMachine {
		require.Len(t, row.Moves, len(fleet.PeeringEvents), "phase %s", row.Phase)
		for _, e := range fleet.PeeringEvents {
			m, ok := row.Moves[e]
			require.True(t, ok, "phase %s does not define %s", row.Phase, e)
			require.True(t, m.To == "" || phases[m.To], "phase %s, event %s leads to unknown %q", row.Phase, e, m.To)
			require.True(t, m.ToEmpty == "" || phases[m.ToEmpty])
		}
	}
}

// Every phase but the last can be left, and CA can have an instance back from anywhere.
func TestEveryPhaseLeadsToReleased(t *testing.T) {
	next := map[fleet.Phase]map[fleet.Phase]bool{}
	for _, row := range fleet.Machine {
		next[row.Phase] = map[fleet.Phase]bool{}
		for _, m := range row.Moves {
			if m.To != "" {
				next[row.Phase][m.To] = true
			}
		}
	}
	var reaches func(fleet.Phase, map[fleet.Phase]bool) bool
	reaches = func(p fleet.Phase, seen map[fleet.Phase]bool) bool {
		if p == fleet.Released {
			return true
		}
		if seen[p] {
			return false
		}
		seen[p] = true
		for n := range next[p] {
			if reaches(n, seen) {
				return true
			}
		}
		return false
	}
	for p := range next {
		require.True(t, reaches(p, map[fleet.Phase]bool{}), "phase %s never ends", p)
	}
}
