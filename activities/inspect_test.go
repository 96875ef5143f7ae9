package activities_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func inspect(t *testing.T, a *activities.Activities, task activities.Task) (fleet.Result, error) {
	t.Helper()
	task.ID = 7
	results, err := run[[]fleet.Result](t, a.Inspect, task)
	if err != nil {
		return fleet.Result{}, err
	}
	require.Len(t, results, 1)
	require.EqualValues(t, 7, results[0].ID)
	require.Equal(t, fleet.OutcomeDone, results[0].Outcome)
	return results[0], nil
}

func TestInspectReturnsTheGroupsObjects(t *testing.T) {
	other := attempt("b-t0-1")
	other.Group = "b"
	w := &world{found: []fleet.Found{whole(attempt("a-t0-1")), whole(attempt("a-t0-2")), whole(other)}}
	a := &activities.Activities{Backend: w}
	all, err := inspect(t, a, activities.Task{Kind: fleet.CommandRecover, Group: "a"})
	require.NoError(t, err)
	require.Equal(t, fleet.Founds(w.found[:2]), all.Found)
	one, err := inspect(t, a, activities.Task{Kind: fleet.CommandInspect, Group: "a", Instances: []string{"a-t0-2",
		"a-t0-9"}})
	require.NoError(t, err)
	require.Equal(t, fleet.Founds(w.found[1:2]), one.Found)
	require.False(t, one.Empty)
	for group, empty := range map[string]bool{"a": false, "b": false, "c": true} {
		none, err := inspect(t, a, activities.Task{Kind: fleet.CommandInspect, Group: group, Instances: []string{"c-t0-1"}})
		require.NoError(t, err)
		require.Empty(t, none.Found)
		require.Equal(t, empty, none.Empty, "of the whole group %s", group)
	}

	w.err = errors.New("the API server does not answer")
	_, err = inspect(t, a, activities.Task{Kind: fleet.CommandRecover, Group: "a"})
	require.ErrorContains(t, err, "recover: the API server does not answer")
	_, err = inspect(t, a, activities.Task{Kind: fleet.CommandInspect, Group: "a"})
	require.ErrorContains(t, err, "inspect: list objects of group a: the API server does not answer")
}

// undying wraps workflows that Terminate cannot end.
type undying struct{ *flows }

func (undying) Terminate(context.Context, string, string) error { return errors.New("no answer") }

// Inspect fails when it cannot list the objects, or when it cannot end a driver that must end.
func TestInspectFailsWithoutAList(t *testing.T) {
	broken := errors.New("no answer")
	check := activities.Task{Kind: fleet.CommandDescribe, Group: "a", Drivers: names(1)}
	recover := activities.Task{Kind: fleet.CommandRecover, Provider: "milan"}
	status := func(s activities.Status) *flows {
		return &flows{status: map[string]activities.Status{names(1)[0].WorkflowID: s}}
	}
	for name, c := range map[string]struct {
		a    *activities.Activities
		task activities.Task
	}{
		"what a closed driver left": {&activities.Activities{Backend: &world{err: broken}, Workflows: &flows{}}, check},
		"an orphan that cannot be ended": {&activities.Activities{Backend: &world{},
			Workflows: undying{status(activities.Status{Running: true, Orphaned: true})}}, check},
		"the peerings": {&activities.Activities{Backend: many{&world{}}, Catalog: offering{}, Entities: &entities{}},
			recover},
		"the objects": {&activities.Activities{Backend: listless{&world{}}, Catalog: offering{}, Entities: &entities{}},
			recover},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inspect(t, c.a, c.task)
			require.Error(t, err)
		})
	}
}

// listless is a backend that lists its peerings, but fails to list its other objects.
type listless struct{ *world }

func (listless) List(context.Context, backend.Scope) ([]fleet.Found, error) {
	return nil, errors.New("no answer")
}

// A check of a single closed driver returns the objects that the driver has left, like a check of many drivers.
func TestSingleClosedDriverIsReportedWithItsObjects(t *testing.T) {
	w := &world{found: []fleet.Found{whole(attempt("a-t0-1"))}}
	got, err := inspect(t, &activities.Activities{Backend: w, Workflows: &flows{}},
		activities.Task{Kind: fleet.CommandDescribe, Group: "a", Drivers: names(1)})
	require.NoError(t, err)
	require.Equal(t, []fleet.DriverStatus{{Instance: "a-t0-1", Found: &w.found[0]}}, got.Drivers)
}

// A provider recovers. It gets its policy for unused peerings from its offer, because only the offer contains this
// policy.
func TestRecoveredProviderHasThePolicyOfItsOffer(t *testing.T) {
	linger := int64(7)
	offers := []fleet.Offer{{Provider: "rome"}, {Provider: "milan", LingerSeconds: &linger, Unpeer: fleet.UnpeerNever}}
	elsewhere := attempt("a-t0-2")
	elsewhere.Provider.ID = "rome"
	w := &world{
		found: []fleet.Found{whole(attempt("a-t0-1")), whole(elsewhere)},
		peers: []fleet.Provider{{ID: "rome"}, {ID: "milan", Credentials: fleet.Credentials{KubeconfigFile: "m"}}},
	}
	for name, c := range map[string]struct {
		catalog offering
		want    fleet.UnpeerPolicy
	}{
		"offered":           {offering{offers: offers}, fleet.UnpeerNever},
		"not offered":       {offering{offers: offers[:1]}, ""},
		"catalog is broken": {offering{err: errors.New("no such file")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := &activities.Activities{Backend: w, Catalog: c.catalog, Entities: &entities{}}
			got, err := inspect(t, a, activities.Task{Kind: fleet.CommandRecover, Provider: "milan"})
			require.NoError(t, err)
			require.Equal(t, &w.peers[1], got.Peering)
			require.Equal(t, fleet.Founds(w.found[:1]), got.Found)
			require.Equal(t, c.want, got.Unpeer)
			require.Equal(t, c.want != "", got.LingerSeconds != nil)
		})
	}
}

// ending is a workflow that still appears as running for a few more reads.
type ending struct {
	flows
	looks int
}

func (e *ending) Status(ctx context.Context, id string) (activities.Status, error) {
	s, err := e.flows.Status(ctx, id)
	e.looks--
	return activities.Status{Running: e.looks > 0, Completed: s.Completed}, err
}

// A provider recovers only after a cancelled removal has ended, because that removal could delete objects that are
// made after the recovery. A removal that does not end delays the recovery only for a bounded time.
func TestRecoveryWaitsForTheRemovalToEnd(t *testing.T) {
	task := activities.Task{Kind: fleet.CommandRecover, Provider: "milan", After: "unpeering/milan"}
	w := &world{peers: []fleet.Provider{{ID: "milan"}}}
	e := &ending{looks: 4}
	a := &activities.Activities{Backend: w, Workflows: e, Catalog: offering{}, Entities: &entities{}}
	got, err := inspect(t, a, task)
	require.NoError(t, err)
	require.Zero(t, e.looks)
	require.NotNil(t, got.Peering)

	e.looks = 1 << 30
	var now atomic.Int64
	a.Now = func() time.Time { return time.Unix(now.Add(7), 0) }
	got, err = inspect(t, a, task)
	require.NoError(t, err)
	require.NotNil(t, got.Peering)

	e.fails = map[string]error{task.After: errors.New("Temporal does not answer")}
	_, err = inspect(t, a, task)
	require.ErrorContains(t, err, "wait for the end of unpeering/milan: Temporal does not answer")

	e.fails, a.Now = nil, nil
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(activity.ErrActivityPaused)
	_, err = run[[]fleet.Result](t, a.Inspect, task, under(ctx))
	require.Error(t, err, "who is called off does not recover")
}

func names(n int) (all []activities.DriverName) {
	for i := range n {
		instance := fmt.Sprintf("a-t0-%d", i+1)
		all = append(all, activities.DriverName{Instance: instance, WorkflowID: "scale-out/" + instance})
	}
	return all
}

// A driver is closed, or its workflow task keeps failing. The result contains the objects of the driver's newest
// attempt. Inspect first terminates a driver that keeps failing.
func TestClosedDriversAreReportedWithTheirObjects(t *testing.T) {
	second := attempt("a-t0-2")
	second.Number = 2
	w := &world{found: []fleet.Found{
		whole(attempt("a-t0-1")), {Attempt: second, Slice: true}, whole(attempt("a-t0-2")), {Attempt: attempt("a-t0-4")},
	}}
	f := &flows{status: map[string]activities.Status{
		"scale-out/a-t0-1": {
			Running: true}, "scale-out/a-t0-3": {Completed: true}, "scale-out/a-t0-4": {Running: true, Failing: true},
	}}
	a := &activities.Activities{Backend: w, Workflows: f}
	got, err := inspect(t, a, activities.Task{Kind: fleet.CommandDescribe, Group: "a", Drivers: names(4)})
	require.NoError(t, err)
	require.Equal(t, []fleet.DriverStatus{
		{Instance: "a-t0-1", Running: true},
		{Instance: "a-t0-2", Found: &w.found[1]},
		{Instance: "a-t0-3", Completed: true},
		{Instance: "a-t0-4", Running: true, Failing: true, Found: &w.found[3]},
	}, got.Drivers)
	require.Contains(t, f.calls, "terminate scale-out/a-t0-4")
	require.NotContains(t, f.calls, "terminate scale-out/a-t0-1")

	f.fails = map[string]error{"scale-out/a-t0-2": errors.New("Temporal does not answer")}
	_, err = inspect(t, a, activities.Task{Kind: fleet.CommandDescribe, Group: "a", Drivers: names(4)})
	require.ErrorContains(t, err, "Temporal does not answer", "a driver whose state is unknown does not count as closed")
}

// Many drivers fail, so the likely cause is a fault in this build. Inspect terminates no driver.
func TestManyFailingDriversAreNotEnded(t *testing.T) {
	f := &flows{status: map[string]activities.Status{}}
	for _, d := range names(4) {
		f.status[d.WorkflowID] = activities.Status{Running: true, Failing: true}
	}
	a := &activities.Activities{Backend: &world{}, Workflows: f}
	_, err := inspect(t, a, activities.Task{Kind: fleet.CommandDescribe, Group: "a", Drivers: names(4)})
	require.NoError(t, err)
	for _, call := range f.calls {
		require.NotContains(t, call, "terminate")
	}
}

// No worker can continue these drivers. Inspect terminates each driver and reports its objects, so that the group can
// replace the driver. This works for any number of drivers.
func TestOrphanedDriversAreEnded(t *testing.T) {
	f := &flows{status: map[string]activities.Status{}}
	var want []fleet.DriverStatus
	w := &world{}
	for _, d := range names(5) {
		f.status[d.WorkflowID] = activities.Status{Running: true, Orphaned: true}
		node := whole(attempt(d.Instance))
		w.found = append(w.found, node)
		want = append(want, fleet.DriverStatus{Instance: d.Instance, Found: &node})
	}
	a := &activities.Activities{Backend: w, Workflows: f}
	got, err := inspect(t, a, activities.Task{Kind: fleet.CommandDescribe, Group: "a", Drivers: names(5)})
	require.NoError(t, err)
	require.Equal(t, want, got.Drivers)
}

// A provider that recovers inherits the cordon of its previous workflow run, or of the observer's record. If neither
// can be read, the recovery continues without the cordon. A visibility store that does not answer, or lists only an
// older run without the cordon, does not hide the record.
func TestRecoveringProviderInheritsItsCordon(t *testing.T) {
	task := activities.Task{Kind: fleet.CommandRecover, Provider: "milan"}
	for name, c := range map[string]struct {
		before *entities
		saved  records
		want   bool
	}{
		"cordoned":        {&entities{before: fleet.ProviderSnapshot{Cordoned: noon}}, records{}, true},
		"not cordoned":    {&entities{}, records{}, false},
		"cannot be read":  {&entities{err: errors.New("no answer")}, records{err: errors.New("no answer")}, false},
		"saved":           {&entities{silent: true}, records{cordoned: []string{"milan"}}, true},
		"nothing answers": {&entities{silent: true}, records{}, false},
		"an older run": {&entities{before: fleet.ProviderSnapshot{ID: "milan"}},
			records{cordoned: []string{"milan"}}, true},
		"of another, saved": {&entities{}, records{cordoned: []string{"turin"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, err := inspect(t, &activities.Activities{Backend: &world{}, Catalog: offering{}, Entities: c.before,
					Records: c.saved}, task)
				require.NoError(t, err)
				require.Equal(t, c.want, r.Cordoned)
			})
		})
	}
}
