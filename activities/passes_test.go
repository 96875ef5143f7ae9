package activities_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// wall is a clock that the test sets.
type wall struct {
	mu sync.Mutex
	at time.Time
}

func (w *wall) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *wall) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// beats keeps the last heartbeat of an activity. before is the heartbeat that the activity receives from its previous
// run.
type beats struct {
	mu     sync.Mutex
	last   activities.Beat
	before *activities.Beat
}

func (b *beats) env(env *testsuite.TestActivityEnvironment) {
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.last = activities.Beat{}
		_ = details.Get(&b.last)
	})
	if b.before != nil {
		env.SetHeartbeatDetails(*b.before)
	}
}

// noBeat fails the test when the activity sends a heartbeat.
func noBeat(t *testing.T) func(*testsuite.TestActivityEnvironment) {
	return func(env *testsuite.TestActivityEnvironment) {
		env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { t.Error("it heartbeats") })
	}
}

func establish(t *testing.T, a *activities.Activities, budget time.Duration, b *beats) error {
	t.Helper()
	a.Entities = running()
	in := fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"}, Budget: metav1.Duration{Duration: budget}}
	return ended(t, a.Establish, in, b.env)
}

// The clock of a step continues over the step's passes, even if the passes run in different workers. Time in which no
// worker ran the step counts as at most ten seconds.
func TestClockContinuesOverPasses(t *testing.T) {
	budget := time.Minute
	for name, c := range map[string]struct {
		before *activities.Beat
		works  time.Duration // duration of this pass on the wall clock
		gaveUp bool
	}{
		"first pass":                  {works: 9 * time.Second},
		"a long pause of the process": {works: time.Hour},
		"continues": {
			before: &activities.Beat{Spent: 40 * time.Second, At: noon.Add(-5 * time.Second)}, works: 9 * time.Second,
		},
		"over": {
			before: &activities.Beat{Spent: 46 * time.Second, At: noon.Add(-5 * time.Second)}, works: 9 * time.Second,
			gaveUp: true,
		},
		"no run for a long time": {
			before: &activities.Beat{Spent: 45 * time.Second, At: noon.Add(-time.Hour)}, works: 4 * time.Second,
		},
		"no run for a long time, then out of budget": {
			before: &activities.Beat{Spent: 45 * time.Second, At: noon.Add(-time.Hour)}, works: 5 * time.Second, gaveUp: true,
		},
		"the other clock is ahead": {
			before: &activities.Beat{Spent: 45 * time.Second, At: noon.Add(time.Hour)}, works: 5 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			clock, b := &wall{at: noon}, &beats{before: c.before}
			w := &world{verb: fails(backend.ErrUnreachable), after: func() { clock.pass(c.works) }}
			err := establish(t, &activities.Activities{Backend: w, Now: clock.now}, budget, b)
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, c.gaveUp, app.NonRetryable())
			require.Equal(t, c.gaveUp, strings.HasPrefix(app.Message(), "not done within 1m0s: "), app.Message())
			kind, f := activities.VerdictOf(err, "milan")
			require.Equal(t, fleet.GaveUp, kind)
			require.Equal(t, fleet.CodeUnreachable, f.Code)
			if !c.gaveUp {
				require.NotZero(t, app.NextRetryDelay(), "it frees its slot")
			}
		})
	}
}

// The network has its own budget. The time in stages of the network does not count towards the budget of the peering.
// The time in other stages does not count towards the budget of the network.
func TestNetworkHasItsOwnBudget(t *testing.T) {
	const spent = 80 * time.Second
	for name, c := range map[string]struct {
		before activities.Beat
		gaveUp string
	}{
		"within both": {before: activities.Beat{Stage: "connection", Spent: spent, Network: 50 * time.Second}},
		"the network's is used up": {gaveUp: "1m0s",
			before: activities.Beat{Stage: "connection", Spent: spent, Network: 59 * time.Second}},
		"the peering's is used up": {gaveUp: "1m10s",
			before: activities.Beat{Stage: "nonce", Spent: spent, Network: 10 * time.Second}},
		"the network's is just used up": {gaveUp: "1m0s",
			before: activities.Beat{Stage: "nonce", Spent: spent, Network: 60 * time.Second}},
		"the network's is not used": {before: activities.Beat{Stage: "nonce", Spent: spent, Network: 59 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.before
			before.At = noon.Add(-2 * time.Second)
			b := &beats{before: &before}
			a := &activities.Activities{Backend: &world{verb: fails(backend.ErrUnreachable)}, Now: (&wall{at: noon}).now,
				Entities: running()}
			in := fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"},
				Budget:        metav1.Duration{Duration: 70 * time.Second},
				NetworkBudget: metav1.Duration{Duration: time.Minute}}
			err := ended(t, a.Establish, in, b.env)
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, c.gaveUp != "", app.NonRetryable(), app.Message())
			if c.gaveUp != "" {
				require.Contains(t, app.Message(), "not done within "+c.gaveUp)
			}
		})
	}
}

// The last heartbeat of a pass contains the last stage and the clock. The next pass continues from this heartbeat,
// and users can read it.
func TestHeartbeatCarriesTheClock(t *testing.T) {
	clock, b := &wall{at: noon}, &beats{before: &activities.Beat{Stage: "nonce", Message: "asked", Spent: 20 * time.Second,
		At: noon.Add(-2 * time.Second)}}
	a := &activities.Activities{Backend: &world{verb: fails(errors.New("broken"))}, Now: clock.now}
	require.Error(t, establish(t, a, time.Minute, b))
	require.Equal(t, activities.Beat{Stage: "slice-auth", Message: "asked milan", Spent: 22 * time.Second, At: noon},
		b.last)
}

// Temporal bills heartbeats, so a step that ends immediately sends none. A step that is retried passes its clock to the
// next pass.
func TestQuickStepSendsNoHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := attempt("a-t0-1")
		a := &activities.Activities{Backend: &world{}, Messages: &messages{}, Catalog: offering{}, Entities: running()}
		require.NoError(t, ended(t, a.Return, activities.ReturnInput{Attempt: at}, noBeat(t)))
		b := &beats{}
		a.Backend = &world{verb: fails(backend.ErrUnreachable)}
		require.Error(t, ended(t, a.Return, activities.ReturnInput{Attempt: at}, b.env))
		require.Equal(t, "slice-auth", b.last.Stage)
	})
}

// A pass ends after a short time, even in the middle of its work. Its slot is free between two passes.
func TestPassEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := establish(t, &activities.Activities{Backend: &world{verb: hangs}}, time.Minute, &beats{})
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.False(t, app.NonRetryable())
		require.Equal(t, "waiting for slice-auth: no answer yet", app.Message())
		require.Equal(t, 4*time.Second, time.Since(began))
	})
}

// onTheWay is a backend that goes from stage to stage.
type onTheWay struct {
	*world
	stages int
	each   time.Duration
}

func (w onTheWay) Establish(ctx context.Context, _ fleet.Provider, p backend.Progress) error {
	for n := range w.stages {
		p(backend.Stage(strconv.Itoa(n)), "looking")
		select {
		case <-time.After(w.each):
		case <-ctx.Done():
			return hangs(ctx)
		}
	}
	return nil
}

// A pass that reaches further stages gets more time, because the next pass would start again from the first stage. It
// still does not occupy its slot for long.
func TestPassWithProgressLastsLonger(t *testing.T) {
	for name, c := range map[string]struct {
		stages     int
		each, ends time.Duration
		done       bool
	}{
		"it arrives": {stages: 3, each: 2 * time.Second, ends: 6 * time.Second, done: true},
		"it hangs":   {stages: 1, each: time.Hour, ends: 4 * time.Second},
		"a long way": {stages: 9, each: time.Second, ends: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a := &activities.Activities{Messages: &messages{}, Backend: onTheWay{&world{}, c.stages, c.each}}
				err := establish(t, a, time.Minute, &beats{})
				require.Equal(t, c.done, err == nil, err)
				require.Equal(t, c.ends, time.Since(began))
			})
		})
	}
}

func TestEndOfAStepIsReported(t *testing.T) {
	at := attempt("a-t0-1")
	view := fleet.View{Instance: at.Instance, Phase: fleet.Unpeering, Sequence: 4, Stuck: "cancelled"}
	released := view
	released.Phase, released.End, released.Stuck = fleet.Released, fleet.EndFinal, ""
	release := []fleet.HoldRequest{{Kind: fleet.HoldRelease, Key: "lca-a-t0-1-1"}}
	peer := fleet.PeeringInput{Provider: at.Provider, Run: 3}
	for name, c := range map[string]struct {
		call func(*activities.Activities) (any, any)
		verb func(context.Context) error
		want *messages
		err  bool
	}{
		"a slice is back": {
			call: func(a *activities.Activities) (any, any) {
				return a.Return, activities.ReturnInput{Attempt: at, View: &view}
			},
			want: &messages{views: []fleet.View{released}, holds: release},
		},
		"an undo is done": {
			call: func(a *activities.Activities) (any, any) { return a.Return, activities.ReturnInput{Attempt: at} },
			want: &messages{holds: release},
		},
		"a return never gives up, also when refused": {
			call: func(a *activities.Activities) (any, any) {
				return a.Return, activities.ReturnInput{Attempt: at, View: &view}
			},
			verb: fails(backend.ErrDenied), err: true,
		},
		"a peering is made": {
			call: func(a *activities.Activities) (any, any) { return a.Establish, peer },
			want: &messages{reports: []fleet.PeeringReport{{Run: 3, Event: fleet.PeeringDone}}},
		},
		"a peering is removed": {
			call: func(a *activities.Activities) (any, any) { return a.RemovePeering, peer },
			want: &messages{reports: []fleet.PeeringReport{{Run: 3, Event: fleet.PeeringDone}}},
		},
		"a peering is used": {
			call: func(a *activities.Activities) (any, any) { return a.RemovePeering, peer }, verb: fails(backend.ErrInUse),
			want: &messages{reports: []fleet.PeeringReport{{Run: 3, Event: fleet.PeeringInUse}}},
		},
		"a removal never gives up": {
			call: func(a *activities.Activities) (any, any) { return a.RemovePeering, peer }, verb: fails(backend.ErrDenied),
			err: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &messages{}
			if c.want == nil {
				c.want = &messages{}
			}
			do, arg := c.call(&activities.Activities{Backend: &world{verb: c.verb}, Messages: m, Catalog: offering{},
				Entities: running()})
			err := ended(t, do, arg)
			require.Equal(t, c.want.views, m.views)
			require.Equal(t, c.want.holds, m.holds)
			require.Equal(t, c.want.reports, m.reports)
			if !c.err {
				require.NoError(t, err)
				return
			}
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.False(t, app.NonRetryable())
		})
	}
}

// A step whose result a workflow needs is retried within a second. A removal is retried at growing intervals.
func TestRetryIntervalsOfSteps(t *testing.T) {
	for _, c := range []struct {
		passes      int32
		soon, later time.Duration
	}{
		{1, 200 * time.Millisecond, 200 * time.Millisecond},
		{3, 800 * time.Millisecond, 800 * time.Millisecond},
		{4, time.Second, 1600 * time.Millisecond},
		{6, time.Second, 5 * time.Second},
		{20, time.Second, 5 * time.Second},
		{21, time.Second, 30 * time.Second},
		{60, time.Second, 30 * time.Second},
		{61, time.Second, 3 * time.Minute},
		{1 << 30, time.Second, 3 * time.Minute},
	} {
		require.Equal(t, c.soon, activities.AgainAfter(c.passes, activities.SoonAgain), "after pass %d", c.passes)
		require.Equal(t, c.later, activities.AgainAfter(c.passes, activities.LaterAgain), "after pass %d", c.passes)
	}
}

// A run of Establish or RemovePeering first reads its provider's entity. It changes nothing if the entity expects a
// later run, or if the entity does not run.
func TestLateRunChangesNothing(t *testing.T) {
	peer := fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"}, Run: 3}
	at := func(run int) *entities {
		return &entities{providers: []fleet.ProviderSnapshot{{ID: "milan", Run: run}}}
	}
	for verb, do := range map[string]func(*activities.Activities) any{
		"Establish":     func(a *activities.Activities) any { return a.Establish },
		"RemovePeering": func(a *activities.Activities) any { return a.RemovePeering },
	} {
		for name, c := range map[string]struct {
			entities *entities
			works    bool
			err      string
		}{
			"the entity waits for it": {entities: at(3), works: true},
			"the entity has just been started": {
				entities: &entities{providers: at(3).providers, justStarted: true}, works: true,
			},
			"the entity has not yet published it": {entities: at(2), works: true},
			"the entity has gone on":              {entities: at(4)},
			"the entity does not run":             {entities: &entities{}},
			"the entity's run cannot be read": {
				entities: &entities{providers: at(3).providers, err: errors.New("no answer")},
				err:      "ask provider/milan for its phase: no answer",
			},
		} {
			t.Run(verb+"/"+name, func(t *testing.T) {
				worked, m := false, &messages{}
				w := &world{after: func() { worked = true }}
				err := ended(t, do(&activities.Activities{Backend: w, Messages: m, Catalog: offering{}, Entities: c.entities}),
					peer)
				require.Equal(t, c.works, worked)
				require.Equal(t, c.works, len(m.reports) == 1, "%v", m.reports)
				if c.err == "" {
					require.NoError(t, err)
					return
				}
				var app *temporal.ApplicationError
				require.ErrorAs(t, err, &app)
				require.False(t, app.NonRetryable(), "it is retried")
				require.ErrorContains(t, err, c.err)
			})
		}
	}
}

// staged is a backend whose Establish takes three seconds for the peering and two seconds for the network. Then it
// fails.
type staged struct {
	world
	clock *wall
}

func (s *staged) Establish(_ context.Context, _ fleet.Provider, p backend.Progress) error {
	p(backend.StageNonce, "")
	s.clock.pass(3 * time.Second)
	p(backend.StageConnection, "")
	s.clock.pass(2 * time.Second)
	p(backend.StageGatewayKeys, "")
	p(backend.StageNonce, "")
	s.clock.pass(4 * time.Second)
	return backend.ErrUnreachable
}

// Establish passes through stages of the peering and of the network. The time of each stage counts towards the budget
// of the part to which the stage belongs.
func TestStageTimeCountsForItsPart(t *testing.T) {
	clock, b := &wall{at: noon}, &beats{}
	a := &activities.Activities{Backend: &staged{clock: clock}, Catalog: offering{}, Now: clock.now}
	require.Error(t, establish(t, a, time.Minute, b))
	require.Equal(t, activities.Beat{Stage: "nonce", Spent: 9 * time.Second, Network: 2 * time.Second, At: clock.now()},
		b.last)
}

// Drain has one budget and no separate network budget. The budget applies to all stages together.
func TestDrainBudgetCoversAllStages(t *testing.T) {
	for spent, gaveUp := range map[time.Duration]bool{10*time.Second - 1: false, 10 * time.Second: true} {
		b := &beats{before: &activities.Beat{Stage: "connection", Spent: spent, Network: 6 * time.Second, At: noon}}
		a := &activities.Activities{Backend: &world{verb: fails(backend.ErrUnreachable)}, Now: (&wall{at: noon}).now,
			Catalog: offering{}}
		err := ended(t, a.Drain, activities.DrainInput{Attempt: attempt("a-t0-1"),
			Budget: metav1.Duration{Duration: 10 * time.Second}}, b.env)
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.Equal(t, gaveUp, app.NonRetryable(), "after %s", spent)
	}
}

// Return never gives up, but has a clock that users read. A fault of this cluster does not pause this clock.
func TestReturnsClockIsNotPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &beats{}
		a := &activities.Activities{Backend: &world{verb: hangs, err: errors.New("connection refused")}}
		require.Error(t, ended(t, a.Return, activities.ReturnInput{Attempt: attempt("a-t0-1")}, b.env))
		require.Equal(t, 4*time.Second, b.last.Spent)
		require.Empty(t, b.last.PausedBecause)
	})
}

// The report of a step's result fails. The step is retried until its entity has received the result.
func TestStepIsRetriedUntilItsEndIsReported(t *testing.T) {
	at := attempt("a-t0-1")
	peer := fleet.PeeringInput{Provider: at.Provider, Run: 3}
	for name, call := range map[string]func(*activities.Activities) (do, arg any){
		"Join":          func(a *activities.Activities) (any, any) { return a.Join, joining() },
		"Return":        func(a *activities.Activities) (any, any) { return a.Return, activities.ReturnInput{Attempt: at} },
		"Establish":     func(a *activities.Activities) (any, any) { return a.Establish, peer },
		"RemovePeering": func(a *activities.Activities) (any, any) { return a.RemovePeering, peer },
	} {
		shown := &board{}
		do, arg := call(&activities.Activities{Backend: &world{}, Catalog: offering{}, Entities: running(), Events: shown,
			Messages: &messages{fails: map[string]error{"milan": errors.New("no answer"), "a": errors.New("no answer")}}})
		require.ErrorContains(t, ended(t, do, arg), "no answer", name)
		for _, line := range shown.all() {
			require.Contains(t, line, "are being created", name)
		}
	}
}
