package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Temporal restored from a backup has another history under the same epoch, and may overtake what a server has seen of
// the old one. Its changes must not be mixed with the old rows.
func TestChangeOfAnotherHistory(t *testing.T) {
	at := time.Unix(1_700_000_000, 0).UTC()
	row := func(name string, phase Phase) InstanceView { return InstanceView{Name: name, Phase: phase, Since: at} }
	picture := func(revision int64, rows ...InstanceView) Snapshot {
		return Snapshot{Group: "g", Epoch: "e", Revision: revision, Instances: rows}
	}
	now := picture(7, row("g-e-1", Ready), row("g-e-2", Peering))
	change := Change{Since: Position{Epoch: "e", Revision: 5}, Snapshot: picture(7, row("g-e-2", Peering)),
		Sum: sum(now.Instances)}

	got, ok := change.Apply(picture(5, row("g-e-1", Ready), row("g-e-2", Pending)))
	require.True(t, ok)
	require.Equal(t, now, got)

	for name, old := range map[string]Snapshot{
		"another phase": picture(5, row("g-e-1", Failed), row("g-e-2", Pending)),
		"a row more":    picture(5, row("g-e-1", Ready), row("g-e-2", Pending), row("g-e-3", Ready)),
		"a row less":    picture(5, row("g-e-2", Pending)),
	} {
		kept, ok := change.Apply(old)
		require.False(t, ok, name)
		require.Equal(t, old, kept, name)
	}
}

// A whole change needs nothing to build on.
func TestWholeChange(t *testing.T) {
	whole := Change{Whole: true, Snapshot: Snapshot{Group: "g", Epoch: "f", Revision: 1}}
	for _, old := range []Snapshot{{}, {Group: "g", Epoch: "e", Revision: 9}} {
		got, ok := whole.Apply(old)
		require.True(t, ok)
		require.Equal(t, whole.Snapshot, got)
	}
}
