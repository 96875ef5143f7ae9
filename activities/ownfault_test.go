package activities_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A fault of this cluster neither ends a step nor undoes an attempt of a healthy provider. The clock of the step is
// therefore paused while this cluster's own API server does not answer, and while no provider answers.
func TestClockPausesForFaultsOfThisCluster(t *testing.T) {
	down := errors.New("connection refused")
	turin := []fleet.Offer{{Provider: "turin", Credentials: fleet.Credentials{KubeconfigFile: "turin"}}}
	verbs := map[string]func(a *activities.Activities) (any, any){
		"Establish": func(a *activities.Activities) (any, any) {
			return a.Establish, fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"},
				Budget: metav1.Duration{Duration: 10 * time.Second}}
		},
		"Join": func(a *activities.Activities) (any, any) { return a.Join, joining() },
		"Drain": func(a *activities.Activities) (any, any) {
			return a.Drain, activities.DrainInput{Attempt: attempt("a-t0-1"),
				Budget: metav1.Duration{Duration: 10 * time.Second}}
		},
	}
	for name, c := range map[string]struct {
		here    error // result of this cluster's API server
		err     error // result of the step
		offers  []fleet.Offer
		answers []string
		probe   func(context.Context) error
		stands  string
	}{
		"this cluster does not answer": {here: down, err: down, stands: "this cluster's API server does not answer"},
		"it does, and the step fails":  {err: errors.New("not yet")},
		"no cluster answers": {
			err: backend.ErrUnreachable, offers: turin, stands: "no provider answers this cluster",
		},
		"another provider answers":                  {err: backend.ErrUnreachable, offers: turin, answers: []string{"turin"}},
		"none answers, the provider was not silent": {err: errors.New("not yet"), offers: turin},
		"the only one does not answer":              {err: backend.ErrUnreachable},
		"the only one does not, but the probe": {err: backend.ErrUnreachable,
			probe: func(context.Context) error { return nil }},
		"the only one does not, nor does the probe": {err: backend.ErrUnreachable,
			probe: func(context.Context) error { return down }, stands: "no provider answers this cluster"},
	} {
		for verb, call := range verbs {
			t.Run(name+"/"+verb, func(t *testing.T) {
				clock := &wall{at: noon}
				b := &beats{before: &activities.Beat{Stage: "slice-auth", Spent: 5 * time.Second, At: noon}}
				w := &world{err: c.here, verb: fails(c.err), answers: c.answers,
					after: func() { clock.pass(9 * time.Second) }}
				do, arg := call(&activities.Activities{Backend: w, Messages: &messages{}, Catalog: offering{offers: c.offers},
					Probe: c.probe, Now: clock.now, Entities: running()})
				err := ended(t, do, arg, b.env)
				var app *temporal.ApplicationError
				require.ErrorAs(t, err, &app)
				require.Equal(t, c.stands == "", app.NonRetryable(), app.Message())
				if c.stands != "" {
					require.Equal(t, activities.Beat{Stage: "slice-auth", Message: "asked milan", Spent: 5 * time.Second,
						At: clock.now(), PausedBecause: c.stands}, b.last)
				}
			})
		}
	}
}

// A paused clock stays paused between two runs of the step. It continues with the first run in which this cluster is
// healthy.
func TestClockContinuesAfterAFaultOfThisCluster(t *testing.T) {
	before := activities.Beat{Stage: "slice-auth", Spent: 5 * time.Second, At: noon.Add(-8 * time.Second),
		PausedBecause: "this cluster's API server does not answer"}
	clock, b := &wall{at: noon}, &beats{before: &before}
	w := &world{verb: fails(backend.ErrUnreachable), after: func() { clock.pass(3 * time.Second) }}
	require.Error(t, establish(t, &activities.Activities{Backend: w, Catalog: offering{}, Now: clock.now}, time.Minute, b))
	require.Equal(t, activities.Beat{Stage: "slice-auth", Message: "asked milan", Spent: 5 * time.Second,
		At: clock.now()}, b.last)
	b.before = &b.last
	require.Error(t, establish(t, &activities.Activities{Backend: w, Catalog: offering{}, Now: clock.now}, time.Minute, b))
	require.Equal(t, 8*time.Second, b.last.Spent)
}

// Join occupies its slot for minutes. Its clock is paused while this cluster does not answer, and continues in the same
// run.
func TestJoinsClockPausesWithinARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const outage, budget = time.Minute, 2 * time.Minute
		b, w := &beats{}, &world{}
		w.verb = func(ctx context.Context) error {
			wait(ctx, 30*time.Second)
			w.breaks(errors.New("connection refused"))
			wait(ctx, outage)
			b.mu.Lock()
			beat := b.last
			b.mu.Unlock()
			require.Equal(t, "this cluster's API server does not answer", beat.PausedBecause)
			require.InDelta(t, 30, beat.Spent.Seconds(), 4)
			w.breaks(nil)
			return hangs(ctx)
		}
		a := &activities.Activities{Backend: w, Messages: &messages{}, Entities: running(), Catalog: offering{}}
		in := joining()
		in.Node.Booking.Spec.Budgets.Join.Duration = budget
		began := time.Now()
		err := ended(t, a.Join, in, b.env)
		require.Equal(t, budget, time.Since(began).Round(time.Second), "the slot is freed")
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app)
		require.False(t, app.NonRetryable(), "what is left of the budget is the next run's: %v", err)
		require.InDelta(t, (budget - outage).Seconds(), b.last.Spent.Seconds(), 8)
		require.Empty(t, b.last.PausedBecause)
	})
}

// many is a cluster with so many peerings that their list takes long.
type many struct{ *world }

func (m many) Peers(context.Context, string) ([]fleet.Provider, error) {
	return nil, context.DeadlineExceeded
}

func (m many) Alive(context.Context) error { return m.err }

// A list of many peerings takes long. This is not a fault and does not pause the clock.
func TestClockContinuesDuringALongList(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		stands bool
	}{"it answers": {}, "it does not": {errors.New("connection refused"), true}} {
		synctest.Test(t, func(t *testing.T) {
			w := many{&world{err: c.err, verb: hangs}}
			a := &activities.Activities{Backend: w, Messages: &messages{}, Entities: running(), Catalog: offering{}}
			err := ended(t, a.Join, joining())
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, c.stands, !app.NonRetryable(), name)
		})
	}
}

// No provider answers, so the step assumes that this cluster is cut off. This pauses the clock for at most half an
// hour.
func TestClockContinuesAfterHalfAnHourOfSilence(t *testing.T) {
	clock, b := &wall{at: noon}, &beats{}
	a := &activities.Activities{Backend: &world{verb: fails(backend.ErrUnreachable)}, Now: clock.now,
		Catalog: offering{offers: []fleet.Offer{{Provider: "turin"}}}}
	for minutes := range 33 {
		require.Error(t, establish(t, a, time.Hour, b))
		require.Equal(t, minutes < 30, b.last.PausedBecause != "", "after %d minutes", minutes)
		clock.pass(time.Minute)
		last := b.last
		b.before = &last
	}
}

// The clock is paused for at most half an hour while no provider answers. An answer of a provider, or a minute
// without a check, starts this half hour again.
func TestAnAnswerRestartsTheHalfHour(t *testing.T) {
	for name, between := range map[string]func(w *world, clock *wall, look func() string){
		"an answer": func(w *world, clock *wall, look func() string) {
			w.answers = []string{"turin"}
			require.Empty(t, look())
			w.answers = nil
			clock.pass(time.Minute)
		},
		"no check": func(_ *world, clock *wall, _ func() string) { clock.pass(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			clock, w := &wall{at: noon}, &world{verb: fails(backend.ErrUnreachable)}
			a := &activities.Activities{Backend: w, Now: clock.now, Catalog: offering{offers: []fleet.Offer{
				{Provider: "turin", Credentials: fleet.Credentials{KubeconfigFile: "turin"}}}}}
			look := func() string {
				b := &beats{}
				require.Error(t, establish(t, a, time.Hour, b))
				return b.last.PausedBecause
			}
			for range 2 {
				for minutes := range 30 {
					require.NotEmpty(t, look(), "after %d minutes", minutes)
					clock.pass(time.Minute)
				}
				between(w, clock, look)
			}
		})
	}
}

// asked counts the requests for a provider's identity.
type asked struct {
	world
	times int
}

func (a *asked) Identify(context.Context, fleet.Credentials) (string, error) {
	a.times++
	return "", backend.ErrUnreachable
}

// Many steps check for a fault of this cluster concurrently. They share one check, whose result is valid for two
// seconds.
func TestStepsShareTheCheckForAFault(t *testing.T) {
	clock, w := &wall{at: noon}, &asked{}
	w.verb = fails(backend.ErrUnreachable)
	a := &activities.Activities{Backend: w, Now: clock.now, Catalog: offering{offers: []fleet.Offer{{Provider: "turin"}}}}
	for _, c := range []struct {
		pass time.Duration
		want int
	}{{0, 1}, {0, 1}, {2*time.Second - 1, 1}, {1, 2}, {time.Second, 2}} {
		clock.pass(c.pass)
		b := &beats{}
		require.Error(t, establish(t, a, time.Minute, b))
		require.Equal(t, "no provider answers this cluster", b.last.PausedBecause)
		require.Equal(t, c.want, w.times)
	}
}

// A step checks other providers only after its own provider was silent. Until the step ends, a clock that is paused
// because of isolation stays paused, and a running clock keeps running.
func TestStepChecksOthersOnlyAfterItsProviderWasSilent(t *testing.T) {
	const isolated = "no provider answers this cluster"
	for _, stood := range []string{"", isolated} {
		synctest.Test(t, func(t *testing.T) {
			b := &beats{before: &activities.Beat{Stage: "slice-auth", At: time.Now(), PausedBecause: stood}}
			a := &activities.Activities{Messages: &messages{}, Entities: running(),
				Catalog: offering{offers: []fleet.Offer{{Provider: "turin"}}},
				Backend: &world{verb: func(ctx context.Context) error { wait(ctx, 8*time.Second); return errors.New("not yet") }}}
			require.Error(t, ended(t, a.Join, joining(), b.env))
			require.Equal(t, stood, b.last.PausedBecause)
		})
	}
}

// wait waits for the duration or until the context ends.
func wait(ctx context.Context, d time.Duration) {
	bounded, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-bounded.Done()
}
