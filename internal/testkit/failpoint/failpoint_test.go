package failpoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/failpoint"
)

// live runs a life with these effects, and returns the points at which its process was killed. After a kill, the
// process repeats the effect, which increases the number of the effect.
func live(l *failpoint.Life, names ...string) (killed []string) {
	for _, name := range names {
		effect, die := l.Before(name)
		if die {
			killed = append(killed, effect+" before")
		} else if l.After(effect) {
			killed = append(killed, effect+" after")
		}
	}
	return killed
}

// An effect that occurs in all lives without kills gives two points: a kill before the effect, and a kill after it.
// Each point gets a kill.
func TestEachPointGetsItsKill(t *testing.T) {
	m := failpoint.New(1, 0)
	one, two := failpoint.Undisturbed(), failpoint.Undisturbed()
	require.Empty(t, live(one, "a", "a", "now and then"))
	require.Empty(t, live(two, "a", "b", "a"))
	m.Derive("plain", one, two)
	require.Len(t, m.Unreached(), 4, "a #1 and a #2, on both sides")

	var all []string
	for l := m.Deal("plain", 1); l != nil; l = m.Deal("plain", 1) {
		all = append(all, live(l, "a", "a")...)
	}
	require.ElementsMatch(t, []string{"a #1 before", "a #1 after", "a #2 before", "a #2 after"}, all)
	points, kills := m.Count()
	require.Equal(t, 4, points)
	require.Equal(t, 4, kills)
	require.Empty(t, m.Unreached())
}

// A point that no life reaches is given up, and reported as unreached. Deal still returns lives until the wanted
// number of kills is reached.
func TestUnreachedPointsAreReported(t *testing.T) {
	m := failpoint.New(1, 7)
	first := failpoint.Undisturbed()
	live(first, "a", "rare")
	m.Derive("plain", first)
	lives := 0
	for l := m.Deal("plain", 2); l != nil; l = m.Deal("plain", 2) {
		require.Less(t, lives, 100, "it ends")
		lives++
		live(l, "a", "a")
	}
	points, kills := m.Count()
	require.Equal(t, 2, points)
	require.GreaterOrEqual(t, kills, 7)
	require.Equal(t, []string{"plain: rare #1, after", "plain: rare #1, before"}, m.Unreached())
	require.Nil(t, m.Deal("other", 1), "there is nothing to reach")
}
