package config

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// The id of a derived group is made of parts, such as the base group's id and the provider. Each id is valid and
// deterministic. Ids of different parts differ, apart from rare collisions of their hash of five characters.
func TestIDsAreValidAndDiffer(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	name := func(r *rand.Rand, most int) string {
		text := make([]byte, 1+r.IntN(most))
		for i := range text {
			text[i] = letters[r.IntN(len(letters))]
		}
		return strings.Trim(string(text), "-") + "x"
	}
	seen, clashes := map[string]string{}, 0
	for r := range testkit.Cases(t) {
		parts := []string{name(r, 24), name(r, 62)}
		if r.IntN(2) == 0 {
			parts = append(parts, name(r, 62))
		}
		id, key := GroupID(parts...), strings.Join(parts, "\x00")
		require.True(t, fleet.ValidGroupID(id), "%q of %q", id, parts)
		require.Equal(t, id, GroupID(parts...))
		if was, ok := seen[id]; ok && was != key {
			clashes++
		}
		seen[id] = key
	}
	require.LessOrEqual(t, clashes, 1, "of %d ids", len(seen))
}

func TestIDsOfUnusualValuesAreValid(t *testing.T) {
	seen := map[string]string{}
	for _, value := range []string{"", "A", "a", "a.b", "_", strings.Repeat("Z", 63), "true", "9", "ä"} {
		id := GroupID("base", value)
		require.True(t, fleet.ValidGroupID(id), "%q", value)
		require.NotContains(t, seen, id, "%q", value)
		seen[id] = value
	}
}
