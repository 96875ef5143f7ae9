package fleet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func whole(attempt int) fleet.Seen {
	return fleet.Seen{Instance: "standard-x-1", Attempt: attempt, Slice: true, Virtual: true, Node: true, Stamped: true, Ready: true}
}

// readyLedger has one Ready instance, attempt 1.
func readyLedger(t *testing.T) (*fleet.Ledger, *fleet.Instance) {
	t.Helper()
	l := ledger(t)
	require.NoError(t, l.Grow(1, t0))
	play(t, &l.Instances[0], t0, done, done, chooseA, done, done)
	return l, &l.Instances[0]
}

func TestCompareOfWhatIsWholeChangesNothing(t *testing.T) {
	l, i := readyLedger(t)
	for range 5 {
		orphans, changed := l.Compare([]fleet.Seen{whole(1)}, t0, t0)
		require.Empty(t, orphans)
		require.False(t, changed)
	}
	require.Equal(t, fleet.Ready, i.Phase)
}

func TestSliceOrVirtualNodeMissingTwiceIsLost(t *testing.T) {
	for name, s := range map[string]fleet.Seen{
		"slice":        {Instance: "standard-x-1", Attempt: 1, Virtual: true, Node: true, Stamped: true, Ready: true},
		"virtual node": {Instance: "standard-x-1", Attempt: 1, Slice: true, Node: true, Stamped: true, Ready: true},
		"everything":   {},
	} {
		t.Run(name, func(t *testing.T) {
			l, i := readyLedger(t)
			_, changed := l.Compare([]fleet.Seen{s}, t0, t0)
			require.False(t, changed, "once may be a hiccup")
			_, _ = l.Compare([]fleet.Seen{whole(1)}, t0, t0)
			_, changed = l.Compare([]fleet.Seen{s}, t0, t0)
			require.False(t, changed, "not twice in a row")
			_, changed = l.Compare([]fleet.Seen{s}, t0, t0)
			require.True(t, changed)
			require.Equal(t, fleet.Draining, i.Phase)
			require.True(t, i.Force)
			require.Equal(t, fleet.CodeLost, i.Failure.Code)
			require.Zero(t, l.Target())
		})
	}
}

// Two Ready instances of which a look shows nothing: an answer that is wrong is likelier than both gone at once.
func TestNothingAtAllOfSeveralIsNotBelievedAtOnce(t *testing.T) {
	several := func() *fleet.Ledger {
		l := ledger(t)
		require.NoError(t, l.Grow(2, t0))
		play(t, &l.Instances[0], t0, done, done, chooseA, done, done)
		play(t, &l.Instances[1], t0, done, done, chooseA, done, done)
		return l
	}
	look := func(l *fleet.Ledger, after time.Duration, seen ...fleet.Seen) int {
		_, _ = l.Compare(seen, t0, t0.Add(after))
		return l.Target()
	}
	l := several()
	require.Equal(t, 2, look(l, 0))
	require.Equal(t, 2, look(l, time.Minute))
	require.Equal(t, 2, look(l, 4*time.Minute))
	require.Equal(t, 2, look(l, 5*time.Minute), "from here on looks count")
	require.Equal(t, 0, look(l, 6*time.Minute))

	l = several()
	require.Equal(t, 2, look(l, 0))
	require.Equal(t, 2, look(l, 4*time.Minute, whole(1)), "one is there: the other is missing once")
	require.Equal(t, 1, look(l, 5*time.Minute, whole(1)), "one that is gone alone is lost as ever")

	l = several()
	require.Equal(t, 2, look(l, 0))
	_, _ = l.Compare([]fleet.Seen{whole(1), {Instance: "standard-x-2", Attempt: 1, Slice: true, Virtual: true, Node: true}}, t0, t0.Add(time.Minute))
	require.Equal(t, 2, look(l, 10*time.Minute), "the time begins anew")
	require.Equal(t, 2, look(l, 11*time.Minute))
}

func TestNodeMissingAloneHasTimeToComeBack(t *testing.T) {
	l, i := readyLedger(t)
	s := whole(1)
	s.Node, s.Stamped, s.Ready = false, false, false
	_, _ = l.Compare([]fleet.Seen{s}, t0, t0)
	_, _ = l.Compare([]fleet.Seen{s}, t0, t0.Add(179*time.Second))
	require.Equal(t, fleet.Ready, i.Phase)
	_, _ = l.Compare([]fleet.Seen{whole(1)}, t0, t0.Add(179*time.Second))
	_, _ = l.Compare([]fleet.Seen{s}, t0, t0.Add(5*time.Minute))
	require.Equal(t, fleet.Ready, i.Phase, "it was back in between")
	_, _ = l.Compare([]fleet.Seen{s}, t0, t0.Add(8*time.Minute))
	require.Equal(t, fleet.Draining, i.Phase)
}

func TestDeadKubeletIsNotReadyNotLost(t *testing.T) {
	l, i := readyLedger(t)
	s := whole(1)
	s.Ready = false
	for n := range 10 {
		_, _ = l.Compare([]fleet.Seen{s}, t0, t0.Add(time.Duration(n)*time.Minute))
	}
	require.Equal(t, fleet.Ready, i.Phase)
	require.True(t, i.View().NotReady)
	_, changed := l.Compare([]fleet.Seen{whole(1)}, t0, t0)
	require.True(t, changed)
	require.False(t, i.View().NotReady)
}

func TestInstanceThatBecameReadyAfterTheLookIsLeftAlone(t *testing.T) {
	l, i := readyLedger(t)
	for range 3 {
		_, _ = l.Compare(nil, t0.Add(-time.Second), t0)
	}
	require.Equal(t, fleet.Ready, i.Phase)
}

func TestOrphansAreSeenTwiceBeforeTheyAreUndone(t *testing.T) {
	l, _ := readyLedger(t)
	stranger := whole(1)
	stranger.Instance = "standard-w-7"
	old := whole(1)
	play(t, &l.Instances[0], t0, leave)
	l.Instances[0].Attempt = 2
	own := whole(2)
	orphans, _ := l.Compare([]fleet.Seen{stranger, old, own}, t0, t0)
	require.Empty(t, orphans)
	orphans, _ = l.Compare([]fleet.Seen{stranger, old, own}, t0, t0)
	require.Equal(t, []fleet.Seen{stranger, old}, orphans)
	ahead := whole(3)
	l.Instances[0].Phase = fleet.Discovering
	for range 3 {
		orphans, _ = l.Compare([]fleet.Seen{ahead}, t0, t0)
		require.Empty(t, orphans, "a scale-out ahead of its report is no orphan")
	}
}

// A hold alone is no object: an instance that has nothing else is as lost as without, and one that nobody has booked is
// taken back.
func TestHoldsAreNoObjects(t *testing.T) {
	l := fleet.Ledger{Instances: []fleet.Instance{{Name: "standard-x-1", Attempt: 1, Phase: fleet.Ready, Since: t0}}}
	seen := []fleet.Seen{{Instance: "standard-x-1", Attempt: 1, Held: true}, {Instance: "standard-x-2", Attempt: 1, Held: true}}
	orphans, _ := l.Compare(seen, t0, t0)
	require.Empty(t, orphans, "once is not enough")
	orphans, _ = l.Compare(seen, t0, t0)
	require.Equal(t, seen[1:], orphans)
	require.Equal(t, fleet.Draining, l.Instances[0].Phase, "lost")
}

// Names of attempts are read back; those of others are not.
func TestParseObjectName(t *testing.T) {
	instance, attempt, ok := fleet.ParseObjectName("standard", fleet.ObjectName("standard-x-12", 3))
	require.True(t, ok)
	require.Equal(t, "standard-x-12", instance)
	require.Equal(t, 3, attempt)
	for _, name := range []string{"", "standard", "standard-x-1", "standard-x-1-", "standard-x-1-0", "standard-x-1--1", "standard-b-x-1-1", "other-x-1-1"} {
		_, _, ok := fleet.ParseObjectName("standard", name)
		require.False(t, ok, "%s", name)
	}
}
