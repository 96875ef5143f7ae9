package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
)

// named makes the first n scale-outs of the group report a provider.
func named(l *fleet.Ledger, n int, now time.Time) {
	var views []fleet.View
	for _, e := range l.Entries[:n] {
		views = append(views, fleet.View{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 2,
			Phase: fleet.Peering, Attempt: 1, Offer: &fleet.Offer{Name: "milan", Provider: "milan"}})
	}
	l.Step(fleet.GroupInput{Views: views}, now)
}

func unstarted(l *fleet.Ledger) (waiting []*fleet.Entry) {
	for _, e := range l.Entries {
		if e.Driver.Kind == "" && e.Phase == fleet.Pending {
			waiting = append(waiting, e)
		}
	}
	return waiting
}

// The group starts waiting scale-outs in batches. The next batch starts when half of the 50 running scale-outs have
// reported a provider.
func TestScaleOutsStartManyTogether(t *testing.T) {
	l, now := group(t, 100)
	settle(l, now)
	require.Len(t, unstarted(l), 50)
	named(l, 24, now)
	require.Len(t, unstarted(l), 50)
	named(l, 25, now)
	require.Len(t, unstarted(l), 25)
}

// A scale-out that has not started within the instance's budget fails, and CA sees the failure.
func TestScaleOutThatIsNotStartedInTimeFails(t *testing.T) {
	l, now := group(t, 60)
	settle(l, now)
	late := unstarted(l)
	require.Len(t, late, 10)
	due := late[0].Deadline()
	require.False(t, l.Due(now).After(due))
	l.Step(fleet.GroupInput{}, due.Add(-time.Second))
	require.Len(t, unstarted(l), 10)
	l.Step(fleet.GroupInput{}, due)
	for _, e := range late {
		require.Equal(t, fleet.Failed, e.Phase)
		require.Equal(t, fleet.CodeTimeout, e.Failure.Code)
	}
}

// A paused group refuses a scale-out in the same way as a group at its max, so that CA tries another group.
func TestPausedGroupRefusesLikeAFullGroup(t *testing.T) {
	l, now := group(t, 0)
	l.Paused = true
	err := l.Operate(fleet.Grow, fleet.Request{Delta: 1,
		Operation: fleet.Operation{ID: "grow", GiveUpAt: now.Add(time.Minute)}}, now)
	require.True(t, fleet.IsRefused(err, fleet.RefusedMax), "%v", err)
	require.ErrorContains(t, err, "resume it")
}

// The result of a scale-out that completed without a last view is unknown, and its workflow id cannot be used again.
// The group therefore removes the objects of that scale-out. A scale-in without a last view counts as done only when it
// completed.
func TestDriverThatClosedWithoutALastView(t *testing.T) {
	for name, c := range map[string]struct {
		leaves    bool
		completed bool
		want      fleet.Phase
	}{
		"scale-out completed": {false, true, fleet.Unpeering},
		"scale-out failed":    {false, false, fleet.Pending},
		"scale-in completed":  {true, true, fleet.Released},
		"scale-in failed":     {true, false, fleet.Draining},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := driven(t, 1)
			e := l.Entries[0]
			if c.leaves {
				l.Step(fleet.GroupInput{Views: []fleet.View{{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 3,
					Phase: fleet.Ready, Attempt: 1, End: fleet.EndFinal}}}, now)
				operate(t, l, fleet.Release, fleet.Request{Names: []string{e.Name}}, now)
				l.Step(fleet.GroupInput{}, now)
				settle(l, now)
				now = now.Add(2*time.Minute + time.Second)
			}
			checked(t, l, now, func(string) fleet.DriverStatus { return fleet.DriverStatus{Completed: c.completed} })
			require.Equal(t, c.want, e.Phase)
		})
	}
}

// Each change of an instance is recorded once as a transition.
func TestEachChangeIsOneTransition(t *testing.T) {
	l, now := group(t, 1)
	l.Transitions()
	named(l, 1, now)
	all := l.Transitions()
	require.Len(t, all, 1)
	require.Equal(t, fleet.Peering, all[0].To)
	e := l.Entries[0]
	again := fleet.View{Instance: e.Name, Generation: e.Driver.Generation, Sequence: 3, Phase: fleet.Peering, Attempt: 1,
		Offer: e.Offer}
	l.Step(fleet.GroupInput{Views: []fleet.View{again}}, now)
	require.Empty(t, l.Transitions())
}

// Each attempt starts with the counters of requests at zero.
func TestAttemptStartsWithZeroCounters(t *testing.T) {
	d := driver.New(fleet.DriverInput{Instance: fleet.NewInstance("standard-x-1", &spec(1).InstanceSpec, t0),
		Spec:  spec(1).InstanceSpec,
		Ahead: 3, Taken: map[string]int{"milan": 2}}, t0)
	d.Step(driver.Event{}, t0)
	found := driver.Event{Ended: &fleet.Event{Kind: fleet.Done, Step: fleet.StepDiscover}}
	require.Equal(t, fleet.StepSelect, d.Step(found, t0)[0].Run)
	d.Resends, d.Unanswered, d.FullSince = 4, 2, t0
	d.Step(driver.Event{Ended: &fleet.Event{Kind: fleet.Done, Step: fleet.StepSelect,
		Offer: &fleet.Offer{Name: "milan", Provider: "milan"}}}, t0)
	require.Equal(t, fleet.Peering, d.Instance.Phase)
	require.Zero(t, d.Resends)
	require.Zero(t, d.Unanswered)
	require.Zero(t, d.Ahead)
	require.Nil(t, d.Taken)
	require.True(t, d.FullSince.IsZero())
}

// A scale-in that the group stops is done if it has already returned the slice. The group starts no further driver.
func TestStoppedScaleInIsDoneAfterReturn(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", &spec(1).InstanceSpec, t0)
	i.Phase, i.Attempt, i.Offer = fleet.Draining, 1, &fleet.Offer{Name: "milan", Provider: "milan"}
	d := driver.New(fleet.DriverInput{Instance: i, Spec: spec(1).InstanceSpec}, t0)
	d.Step(driver.Event{}, t0)
	d.Step(driver.Event{Ended: &fleet.Event{Kind: fleet.Done, Step: fleet.StepDrain, Attempt: 1}}, t0)
	require.True(t, d.Step(driver.Event{Order: &fleet.Order{Stop: true}}, t0)[0].CancelStep)
	actions := d.Step(driver.Event{Ended: &fleet.Event{Kind: fleet.Done, Step: fleet.StepReturn, Attempt: 1}}, t0)
	require.Equal(t, fleet.Released, d.Instance.Phase)
	require.Equal(t, fleet.EndFinal, actions[len(actions)-1].End)
}

// A Node that was Ready counts as registered. CA does not wait for the Node after the Node has disappeared.
func TestReadyNodeCountsAsRegistered(t *testing.T) {
	i := fleet.NewInstance("standard-x-1", &spec(1).InstanceSpec, t0)
	i.Phase, i.Attempt = fleet.Joining, 1
	require.False(t, i.Registered)
	_, err := i.Apply(fleet.Event{Kind: fleet.Done, Step: fleet.StepJoin, Attempt: 1}, t0)
	require.NoError(t, err)
	require.Equal(t, fleet.Ready, i.Phase)
	require.True(t, i.Registered)
	_, err = i.Apply(fleet.Event{Kind: fleet.Deleted}, t0)
	require.NoError(t, err)
	require.Equal(t, fleet.Draining, i.Phase)
	require.False(t, i.Registered)
}

// An instance that finds no provider within its budget fails with Timeout, or with the failure of its last provider.
func TestInstanceWithoutAProviderFailsInTime(t *testing.T) {
	for _, last := range []*fleet.Failure{nil, fleet.NewFailure(fleet.CodeNoCapacity, "milan", "", "full")} {
		i := fleet.NewInstance("standard-x-1", &spec(1).InstanceSpec, t0)
		i.Failure = last
		d := driver.New(fleet.DriverInput{Instance: i, Spec: spec(1).InstanceSpec}, t0)
		require.Equal(t, fleet.StepDiscover, d.Step(driver.Event{}, t0)[0].Run)
		again := &fleet.Event{Kind: fleet.Done, Step: fleet.StepDiscover}
		d.Step(driver.Event{Ended: again}, i.Deadline())
		require.Equal(t, fleet.Failed, d.Instance.Phase)
		want := fleet.CodeTimeout
		if last != nil {
			want = last.Code
		}
		require.Equal(t, want, d.Instance.Failure.Code)
	}
}
