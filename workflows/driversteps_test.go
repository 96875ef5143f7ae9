package workflows_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
)

// A driver runs only the steps of its own workflow, ScaleOut or ScaleIn, in every order of events. The test visits all
// states that a driver can reach within two attempts; the fast tests use one attempt.
func TestDriversRunTheirOwnStepsOnly(t *testing.T) {
	for kind, c := range map[fleet.DriverKind]struct {
		from  []fleet.Phase
		steps []fleet.Step
	}{
		fleet.ScaleOut: {
			[]fleet.Phase{fleet.Pending, fleet.Discovering, fleet.Selecting, fleet.Peering, fleet.Joining},
			[]fleet.Step{fleet.StepDiscover, fleet.StepSelect, fleet.StepJoin},
		},
		fleet.ScaleIn: {[]fleet.Phase{fleet.Draining, fleet.Unpeering}, []fleet.Step{fleet.StepDrain, fleet.StepReturn}},
	} {
		t.Run(string(kind), func(t *testing.T) {
			ran := map[fleet.Step]bool{}
			for _, phase := range c.from {
				everyRun(t, phase, func(path []driver.Event, a driver.Action) {
					if a.Run != fleet.StepNone {
						require.Contains(t, c.steps, a.Run, "from %s by %+v", phase, path)
						ran[a.Run] = true
					}
				})
			}
			require.Len(t, ran, len(c.steps))
		})
	}
}

// everyRun starts a driver in the phase and plays every order of events. For each action it calls the function show
// with the preceding events.
func everyRun(t *testing.T, phase fleet.Phase, show func(path []driver.Event, a driver.Action)) {
	t.Helper()
	seen, attempts := map[string]bool{}, 2
	if testing.Short() {
		attempts = 1
	}
	paths := [][]driver.Event{{{}}}
	for len(paths) > 0 {
		path := paths[0]
		paths = paths[1:]
		d, over := played(phase, path, show)
		key := stateOf(d)
		if over || d.Instance.Attempt > attempts || seen[key] {
			continue
		}
		seen[key] = true
		for _, ev := range eventsFor(d) {
			paths = append(paths, append(slices.Clone(path), ev))
		}
	}
	require.Greater(t, len(seen), 1)
}

// played returns a driver after these events, and reports whether the driver has ended.
func played(phase fleet.Phase, path []driver.Event, show func([]driver.Event, driver.Action)) (d *driver.Driver,
	over bool) {
	i := fleet.NewInstance("standard-x-1", &spec(1).InstanceSpec, t0)
	i.Phase = phase
	if phase == fleet.Peering || phase == fleet.Joining || phase.Shrinking() {
		i.Attempt, i.Offer = 1, &fleet.Offer{Name: "milan", Provider: "milan"}
	}
	d = driver.New(fleet.DriverInput{Instance: i, Spec: spec(1).InstanceSpec}, t0)
	for n, ev := range path {
		now := t0
		if ev.Elapsed {
			now = t0.Add(24 * time.Hour)
		}
		for _, a := range d.Step(ev, now) {
			show(path[:n+1], a)
			over = over || a.End != fleet.EndNone
		}
	}
	return d, over
}

// stateOf returns the part of the driver's state that decides its next actions. Plain counters are left out.
func stateOf(d *driver.Driver) string {
	hidden := reflect.ValueOf(*d)
	return fmt.Sprint(d.Instance.Phase, d.Instance.Attempt, d.Instance.Force, d.Instance.Stuck, d.Instance.Leaving,
		d.Running, d.Ending, d.Unanswered, d.FullSince.IsZero(), hidden.FieldByName("again").Bool(),
		hidden.FieldByName("early").IsNil())
}

// eventsFor returns all events that are possible now.
func eventsFor(d *driver.Driver) []driver.Event {
	all := []driver.Event{{}, {Elapsed: true}, {Cancelled: true}, {Reset: true}}
	for _, o := range []fleet.Order{{Stop: true}, {Deleted: true}, {Lost: true}, {Paused: true}, {Retry: true},
		{Resend: d.Resends + 1, Attempt: d.Instance.Attempt}} {
		all = append(all, driver.Event{Order: &o})
	}
	for attempt := range d.Instance.Attempt + 2 {
		key := fleet.ObjectName(d.Instance.Name, attempt)
		for _, state := range []fleet.HoldState{fleet.HoldWaiting, fleet.HoldGranted, fleet.HoldRefused,
			fleet.HoldReleased} {
			all = append(all, driver.Event{Answer: &fleet.Answer{Key: key, Provider: "milan", State: state}})
		}
		full := fleet.NewFailure(fleet.CodeNoCapacity, "milan", "", "full")
		all = append(all, driver.Event{Answer: &fleet.Answer{Key: key, Provider: "milan", State: fleet.HoldRefused,
			Failure: full}})
	}
	if d.Running == fleet.StepNone {
		return all
	}
	for _, kind := range []fleet.EventKind{fleet.Done, fleet.Again, fleet.Refused, fleet.GaveUp, fleet.Cancelled} {
		ev := fleet.Event{Kind: kind, Step: d.Running, Attempt: d.Instance.Attempt}
		if kind == fleet.Done && d.Running == fleet.StepSelect {
			ev.Offer = &fleet.Offer{Name: "milan", Provider: "milan"}
		}
		all = append(all, driver.Event{Ended: &ev})
	}
	return all
}

// The group passes a scale-out the number of scale-outs ahead of this scale-out and the capacity that they take. The
// scale-out uses these numbers for its first choice only. By the next choice the providers have published or released
// the holds of the other scale-outs. If the scale-out used the numbers again, it would subtract their capacity twice.
func TestScaleOutsAheadCountForTheFirstChoiceOnly(t *testing.T) {
	d := driver.New(fleet.DriverInput{Instance: fleet.NewInstance("standard-x-1", &spec(1).InstanceSpec, t0),
		Spec: spec(1).InstanceSpec, Ahead: 2,
		Taken: map[string]int{"milan": 3}}, t0)
	require.Equal(t, []driver.Action{{Run: fleet.StepDiscover}}, d.Step(driver.Event{}, t0))
	require.Equal(t, []driver.Action{{Run: fleet.StepSelect}}, d.Step(driver.Event{Ended: &fleet.Event{Kind: fleet.Done,
		Step: fleet.StepDiscover}}, t0))
	require.Equal(t, 2, d.Ahead)
	require.Equal(t, map[string]int{"milan": 3}, d.Taken)
	require.NotZero(t, d.Step(driver.Event{Ended: &fleet.Event{Kind: fleet.Again, Step: fleet.StepSelect}}, t0)[0].Timer)
	require.Equal(t, []driver.Action{{Run: fleet.StepDiscover}}, d.Step(driver.Event{Elapsed: true}, t0))
	require.Zero(t, d.Ahead)
	require.Empty(t, d.Taken)
}
