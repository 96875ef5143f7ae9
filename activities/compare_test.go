package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func row(name string, phase fleet.Phase) fleet.InstanceView {
	return fleet.InstanceView{Name: name, Phase: phase, Attempt: 1, Provider: "milan"}
}

// compared is one round over one group and one provider.
func compared(t *testing.T, rows []fleet.InstanceView, holds []string, found []fleet.Found,
	differed ...string) (activities.Round, *messages) {
	t.Helper()
	m := &messages{}
	a := &activities.Activities{
		Backend: &world{found: found}, Messages: m,
		Entities: &entities{
			groups:    []fleet.Snapshot{{Group: "a", Instances: rows}},
			providers: []fleet.ProviderSnapshot{{ID: "milan", Holds: holds}},
		},
	}
	round, err := run[activities.Round](t, a.Compare, activities.Round{Number: 3, Began: noon, Differed: differed})
	require.NoError(t, err)
	require.EqualValues(t, 3, round.Number)
	require.Equal(t, noon, round.Began)
	return round, m
}

func TestCompareRowsOfAGroup(t *testing.T) {
	whole := whole(attempt("a-t0-1"))
	change := func(f func(*fleet.Found)) fleet.Found { c := whole; f(&c); return c }
	notReady := row("a-t0-1", fleet.Ready)
	notReady.NotReady = true
	older := change(func(f *fleet.Found) { f.Attempt.Number = 0 })
	for name, c := range map[string]struct {
		row   fleet.InstanceView
		found []fleet.Found
		want  fleet.Differences
	}{
		"as published": {row("a-t0-1", fleet.Ready), []fleet.Found{whole}, fleet.Differences{}},
		"not ready, told": {
			notReady, []fleet.Found{change(func(f *fleet.Found) { f.Ready = false })}, fleet.Differences{},
		},
		"ready again": {notReady, []fleet.Found{whole}, fleet.Differences{Found: fleet.Founds{whole}}},
		"gone": {
			row("a-t0-1", fleet.Ready), nil, fleet.Differences{Empty: true, Missing: []string{"a-t0-1"}},
		},
		"not booked": {
			row("a-t0-2", fleet.Pending), []fleet.Found{whole}, fleet.Differences{Found: fleet.Founds{whole}},
		},
		"of a failed one": {
			row("a-t0-1", fleet.Failed), []fleet.Found{whole}, fleet.Differences{Found: fleet.Founds{whole}},
		},
		"of another attempt": {
			row("a-t0-1", fleet.Ready), []fleet.Found{whole, older}, fleet.Differences{Found: fleet.Founds{older}},
		},
		"under way": {
			row("a-t0-1", fleet.Peering), []fleet.Found{{Attempt: whole.Attempt, Slice: true}}, fleet.Differences{},
		},
		"not made yet": {row("a-t0-1", fleet.Peering), nil, fleet.Differences{Empty: true}},
	} {
		t.Run(name, func(t *testing.T) {
			_, m := compared(t, []fleet.InstanceView{c.row}, []string{"lca-a-t0-1-1"}, c.found, "group/a")
			c.want.Round, c.want.Began = 3, noon
			require.Equal(t, c.want, m.rows["group/a"])
		})
	}
	for name, broken := range map[string]fleet.Found{
		"no slice":       change(func(f *fleet.Found) { f.Slice = false }),
		"no virtualnode": change(func(f *fleet.Found) { f.Virtual = false }),
		"no node":        change(func(f *fleet.Found) { f.Node = false }),
		"no stamp":       change(func(f *fleet.Found) { f.Stamped = false }),
		"terminating":    change(func(f *fleet.Found) { f.Terminating = true }),
		"not ready":      change(func(f *fleet.Found) { f.Ready = false }),
	} {
		t.Run(name, func(t *testing.T) {
			_, m := compared(t, []fleet.InstanceView{row("a-t0-1", fleet.Ready)}, nil, []fleet.Found{broken})
			require.Equal(t, fleet.Founds{broken}, m.rows["group/a"].Found)
		})
	}
}

func TestCompareRowsOfAProvider(t *testing.T) {
	ready, made := row("a-t0-1", fleet.Ready), whole(attempt("a-t0-1"))
	leaving := made
	leaving.Terminating = true
	for name, c := range map[string]struct {
		rows           []fleet.InstanceView
		holds          []string
		found          []fleet.Found
		unheld, unused []string
	}{
		"held and used": {
			rows: []fleet.InstanceView{ready}, holds: []string{"lca-a-t0-1-1"}, found: []fleet.Found{made},
		},
		"held and on its way": {
			rows: []fleet.InstanceView{row("a-t0-1", fleet.Peering)}, holds: []string{"lca-a-t0-1-1"},
		},
		"not held": {
			rows: []fleet.InstanceView{ready}, found: []fleet.Found{made}, unheld: []string{"lca-a-t0-1-1"},
		},
		"not held, on its way": {rows: []fleet.InstanceView{ready}, found: []fleet.Found{leaving}},
		"not used":             {holds: []string{"lca-a-t0-1-1"}, unused: []string{"lca-a-t0-1-1"}},
		"held by a failed one": {
			rows: []fleet.InstanceView{row("a-t0-1", fleet.Failed)}, holds: []string{"lca-a-t0-1-1"},
			unused: []string{"lca-a-t0-1-1"},
		},
		"held, objects not gone": {holds: []string{"lca-a-t0-1-1"}, found: []fleet.Found{made}},
	} {
		t.Run(name, func(t *testing.T) {
			_, m := compared(t, c.rows, c.holds, c.found, "provider/milan")
			told := m.rows["provider/milan"]
			require.Equal(t, c.unheld, told.Unheld)
			require.Equal(t, c.unused, told.Unused)
			require.EqualValues(t, 3, told.Round)
			require.Equal(t, noon, told.Began)
		})
	}
}

// Most entities are as they should be: only those hear of a round that differ, or did in the round before.
func TestCompareTellsOnlyWhoDiffers(t *testing.T) {
	rows, holds, found := []fleet.InstanceView{row("a-t0-1", fleet.Ready)}, []string{"lca-a-t0-1-1"},
		[]fleet.Found{whole(attempt("a-t0-1"))}
	round, m := compared(t, rows, holds, found)
	require.Empty(t, m.told)
	require.Empty(t, round.Differed)
	round, m = compared(t, rows, holds, nil)
	require.Equal(t, []string{"group/a"}, m.told)
	require.Equal(t, []string{"group/a"}, round.Differed)
	round, m = compared(t, rows, holds, found, "group/a", "group/closed")
	require.Equal(t, []string{"group/a"}, m.told, "it hears that all is well")
	require.Empty(t, round.Differed)
}

func TestCompareWhenSomeoneCannotBeTold(t *testing.T) {
	for _, entity := range []string{"group/a", "provider/milan"} {
		for name, c := range map[string]struct {
			err  error
			want []string
		}{
			"no answer":      {errors.New("no answer"), []string{entity}}, // it must hear in the next round
			"closed by then": {fleet.ErrNotRunning, nil},
		} {
			t.Run(entity+"/"+name, func(t *testing.T) {
				e := running("milan")
				e.groups = []fleet.Snapshot{{Group: "a"}}
				a := &activities.Activities{Backend: &world{}, Entities: e,
					Messages: &messages{fails: map[string]error{entity: c.err}}}
				round, err := run[activities.Round](t, a.Compare, activities.Round{Number: 1, Differed: []string{entity}})
				require.NoError(t, err)
				require.Equal(t, c.want, round.Differed)
			})
		}
	}
}

// Each of our peerings and slices has an entity; what does not say its provider starts none.
func TestCompareEnsuresProviders(t *testing.T) {
	e := &entities{}
	nameless, elsewhere := attempt("a-t0-2"), attempt("a-t0-3")
	nameless.Provider.ID, elsewhere.Provider.ID = "", "turin"
	a := &activities.Activities{
		Backend: &world{found: []fleet.Found{whole(attempt("a-t0-1")), whole(nameless), whole(elsewhere)},
			peers: []fleet.Provider{{ID: "rome"}, {ID: "milan"}}},
		Messages: &messages{}, Entities: e,
	}
	_, err := run[activities.Round](t, a.Compare, activities.Round{})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"milan", "rome", "turin"}, e.ensured)
}

// unpublished is an index that cannot say which providers run.
type unpublished struct {
	*entities
	broken error
}

func (u unpublished) Providers(context.Context) ([]fleet.ProviderSnapshot, error) {
	return nil, u.broken
}

// A list that fails says nothing: nobody is told, and the round fails.
func TestCompareWithoutAList(t *testing.T) {
	broken := errors.New("no answer")
	for name, a := range map[string]*activities.Activities{
		"list objects":   {Backend: &world{err: broken}, Entities: &entities{}},
		"list peerings":  {Backend: many{&world{}}, Entities: &entities{}},
		"read groups":    {Backend: &world{}, Entities: &entities{err: broken}},
		"read providers": {Backend: &world{}, Entities: unpublished{&entities{}, broken}},
	} {
		m := &messages{}
		a.Messages = m
		_, err := run[activities.Round](t, a.Compare, activities.Round{Differed: []string{"group/a"}})
		require.ErrorContains(t, err, name)
		require.Empty(t, m.told)
	}
}

// A provider that is of no use runs no timer: the first round after its day has it look whether it may close.
func TestCompareWakesAProviderThatMayClose(t *testing.T) {
	useless := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Absent, Since: noon.Add(-fleet.CloseAfter - time.Second)}
	for name, c := range map[string]struct {
		change func(*fleet.ProviderSnapshot)
		told   []string
	}{
		"of no use":    {func(*fleet.ProviderSnapshot) {}, []string{"provider/milan"}},
		"not for long": {func(p *fleet.ProviderSnapshot) { p.Since = noon.Add(-fleet.CloseAfter) }, nil},
		"peered":       {func(p *fleet.ProviderSnapshot) { p.Phase = fleet.Lingering }, nil},
		"cordoned":     {func(p *fleet.ProviderSnapshot) { p.Cordoned = noon }, nil},
		"a standby": {func(p *fleet.ProviderSnapshot) {
			p.Standby = map[string]fleet.HoldState{"standby/a/t0-1": fleet.HoldWaiting}
		}, nil},
		"held": {func(p *fleet.ProviderSnapshot) { p.Holds = []string{"lca-a-t0-1-1"} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, m := useless, &messages{}
			c.change(&p)
			groups := []fleet.Snapshot{{Group: "a", Standby: []fleet.Standby{{Provider: "milan", Key: "standby/a/t0-1"}},
				Instances: []fleet.InstanceView{row("a-t0-1", fleet.Peering)}}}
			a := &activities.Activities{Backend: &world{}, Messages: m,
				Entities: &entities{groups: groups, providers: []fleet.ProviderSnapshot{p}}}
			round, err := run[activities.Round](t, a.Compare, activities.Round{Number: 3, Began: noon})
			require.NoError(t, err)
			require.Equal(t, c.told, m.told)
			require.Empty(t, round.Differed)
		})
	}
}
