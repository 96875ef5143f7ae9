package grpcserver

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A change names the rows that are different since the position that its caller named. When the picture has moved on
// meanwhile, it still builds on it; rows that are newer there stay.
func TestChangeOnALaterRevision(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		require.NoError(t, d.increase(time.Second, 1))
		began := time.Now()
		late, err := f.Grow(t.Context(), "cpu", 1, 0, d.s.roster.Load().byID["cpu"].seen())
		require.NoError(t, err)
		require.False(t, late.Whole)
		require.Len(t, late.Snapshot.Instances, 1, "only what changed")

		g := d.s.roster.Load().byID["cpu"]
		first := g.seen()
		reads := f.called("snapshot")
		require.NoError(t, d.increase(time.Second, 1)) // since first, too: it brings both
		require.Equal(t, 3, d.target())
		require.True(t, g.apply(late, began))
		require.Equal(t, 3, d.target(), "older than the picture")

		// The group has moved on by itself: the answer tells that, too.
		f.ready("cpu", 1)
		require.NoError(t, d.increase(time.Second, 1))
		require.Equal(t, 4, d.target())
		require.Equal(t, fleet.Ready, g.picture.Load().Instances[0].Phase)
		require.Equal(t, f.published("cpu").Instances, g.picture.Load().Instances)
		require.Equal(t, reads, f.called("snapshot"), "nothing was read")
		require.True(t, first.Before(g.seen()))
	})
}

// gap makes an answer that begins later than the picture ends.
func gap(c *fleet.Change) { c.Since.Revision = c.Snapshot.Revision }

// A change that does not build on the picture is not merged into it: the group is read before the caller learns of it.
func TestChangeThatDoesNotBuildOnThePicture(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) { f.onAnswer = gap })
		reads := f.called("snapshot")
		require.NoError(t, d.increase(time.Second, 2))
		require.Equal(t, 2, d.target())
		require.Equal(t, reads+1, f.called("snapshot"))
		require.NoError(t, d.refresh())
	})
}

// When that read fails too, the operation is booked all the same; until reads can show it, CA's loop stops.
func TestChangeThatCannotBeShown(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		f.set(func(f *fakeGroups) {
			f.onAnswer = func(c *fleet.Change) {
				gap(c)
				f.failing["cpu"] = errors.New("decode memo: broken")
			}
		})
		require.NoError(t, d.increase(time.Second, 2))
		requireCode(t, codes.Unavailable, d.refresh())
		f.set(func(f *fakeGroups) { f.failing = map[string]error{} })
		require.NoError(t, d.refresh())
		require.Equal(t, 2, d.target())
	})
}

// Every operation names the newest position seen, so that a group whose history went back notices.
func TestOperationsNameThePositionSeen(t *testing.T) {
	bubble(t, func(t *testing.T, d direct, f *fakeGroups) {
		var answers []fleet.Position
		for range 2 {
			f.set(func(f *fakeGroups) { f.onAnswer = func(c *fleet.Change) { answers = append(answers, c.Since) } })
			before := d.s.roster.Load().byID["cpu"].seen()
			require.NoError(t, d.increase(time.Second, 1))
			require.Equal(t, before, answers[len(answers)-1])
		}
		require.True(t, answers[0].Before(answers[1]))
	})
}
