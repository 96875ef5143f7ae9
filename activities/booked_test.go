package activities_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Join makes no object until the group confirms the instance. If the group does not know the instance, Join sends the
// instance's state (a view) to the group. The group then answers with the order to stop.
func TestJoinWaitsForTheGroupsConfirmation(t *testing.T) {
	row := func(phase fleet.Phase, state fleet.State) fleet.Snapshot {
		s := booking()
		s.Instances[0].Phase, s.Instances[0].State = phase, state
		return s
	}
	growing := booking()
	saved := func(p fleet.Position) records {
		return records{groups: map[string]fleet.GroupRecord{"a": {Position: p}}}
	}
	for name, c := range map[string]struct {
		group   fleet.Snapshot
		records activities.Records
		err     error
		stands  bool // the node exists and is Ready
		joins   bool
		done    bool
		asks    bool // the group receives the view
	}{
		"booked":                        {group: growing, joins: true},
		"booked, nothing saved":         {group: growing, records: records{}, joins: true},
		"booked, and its choice unread": {group: row(fleet.Pending, fleet.StateCreating), joins: true},
		"deleted":                       {group: row(fleet.Joining, fleet.StateDeleting), asks: true},
		"ready, and its node is gone":   {group: row(fleet.Ready, fleet.StateRunning), asks: true},
		"ready already":                 {group: row(fleet.Ready, fleet.StateRunning), stands: true, done: true},
		"ready, and deleted":            {group: row(fleet.Ready, fleet.StateDeleting), stands: true, asks: true},
		"not booked":                    {group: fleet.Snapshot{Group: "a", Epoch: "t2"}, asks: true},
		"the group does not run":        {},
		"the group cannot be read":      {group: growing, err: errors.New("no answer")},
		"booked, as far as was saved": {group: growing, records: saved(fleet.Position{Epoch: "t1", Revision: 7, Booked: 3}),
			joins: true},
		"reverted, by the revision":  {group: growing, records: saved(fleet.Position{Epoch: "t1", Revision: 8})},
		"reverted, by the epoch":     {group: growing, records: saved(fleet.Position{Epoch: "t2"})},
		"reverted, by the names":     {group: growing, records: saved(fleet.Position{Epoch: "t1", Booked: 4})},
		"reverted, by the releases":  {group: growing, records: saved(fleet.Position{Epoch: "t1", Released: 1})},
		"the records cannot be read": {group: growing, records: records{err: errors.New("no answer")}},
	} {
		t.Run(name, func(t *testing.T) {
			m, made := &messages{}, 0
			e := &entities{err: c.err}
			if c.group.Group != "" {
				e.groups = append(e.groups, c.group)
			}
			in, w := joining(), &world{after: func() { made++ }}
			if c.stands {
				w.found = []fleet.Found{{Attempt: in.Node.Attempt, Marked: true, Stamped: true, Ready: true}}
			}
			a := &activities.Activities{Backend: w, Messages: m, Entities: e, Records: c.records}
			err := ended(t, a.Join, in)
			if c.joins {
				require.NoError(t, err)
				require.Equal(t, 1, made)
				return
			}
			if c.done {
				require.NoError(t, err)
				require.Zero(t, made)
				require.Empty(t, m.views)
				return
			}
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, activities.TypeUnconfirmed, app.Type())
			require.False(t, app.NonRetryable())
			require.Zero(t, made)
			if c.asks {
				view := in.View
				view.Sequence--
				require.Equal(t, []fleet.View{view}, m.views, "the group takes it, and after it the view Ready")
			} else {
				require.Empty(t, m.views)
			}
		})
	}
}
