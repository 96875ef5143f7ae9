package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// joining returns the input of a Join with a budget of ten seconds.
func joining() activities.JoinInput {
	var in activities.JoinInput
	in.Node.Attempt = attempt("a-t0-1")
	in.Node.Booking.Spec.Budgets.Join = metav1.Duration{Duration: 10 * time.Second}
	in.View = fleet.View{
		Instance: "a-t0-1", Phase: fleet.Joining, Attempt: 1, Sequence: 5, Failure: &fleet.Failure{Code: fleet.CodeRefused},
	}
	return in
}

var ready = []fleet.View{{Instance: "a-t0-1", Phase: fleet.Ready, End: fleet.EndFinal, Attempt: 1, Sequence: 5}}

func TestJoinReturnsTheResultOfItsNode(t *testing.T) {
	spent := func(d time.Duration) *beats { return &beats{before: &activities.Beat{Spent: d, At: noon}} }
	half := whole(attempt("a-t0-1"))
	half.Stamped = false
	starting := whole(attempt("a-t0-1"))
	starting.Starting = true
	leaving := whole(attempt("a-t0-1"))
	leaving.Terminating = true
	later := whole(attempt("a-t0-1"))
	later.Attempt.Number = 2
	elsewhere := whole(attempt("a-t0-1"))
	elsewhere.Attempt.Provider.ID = "turin"
	cordoned := fleet.ProviderRefusal{Kind: fleet.RefusingCordoned, Reason: "cordoned"}
	refusing := []fleet.HoldRequest{{Kind: fleet.HoldRefusing, Key: "lca-a-t0-1-1", Refusing: &cordoned}}
	broken := []fleet.HoldRequest{{Kind: fleet.HoldBroken, Key: "lca-a-t0-1-1"}}
	for name, c := range map[string]struct {
		verb  func(context.Context) error
		found fleet.Found
		spent time.Duration
		views []fleet.View
		holds []fleet.HoldRequest
		deaf  bool // its entity does not answer
		final bool // not retried
		kind  fleet.EventKind
	}{
		"ready":   {views: ready},
		"refused": {verb: fails(backend.ErrDenied), final: true, kind: fleet.Refused},
		"refused as a whole: the provider's entity hears of it": {
			verb: fails(&backend.RefusingError{ProviderRefusal: cordoned}), holds: refusing, final: true, kind: fleet.Refused,
		},
		"refused as a whole, and its entity does not hear of it": {
			verb: fails(&backend.RefusingError{ProviderRefusal: cordoned}), holds: refusing, deaf: true, spent: 9 * time.Second,
		},
		"refused as a whole, and its entity does not hear of it in time": {
			verb: fails(&backend.RefusingError{ProviderRefusal: cordoned}), holds: refusing, deaf: true,
			spent: 10 * time.Second, final: true, kind: fleet.Refused,
		},
		"granted too little":       {verb: fails(backend.ErrShort), final: true, kind: fleet.Refused},
		"no room":                  {verb: fails(backend.ErrFull), final: true, kind: fleet.Refused},
		"fails, and may try again": {verb: fails(backend.ErrUnreachable), spent: 9 * time.Second},
		"fails at the end": {
			verb: fails(backend.ErrUnreachable), spent: 10 * time.Second, final: true, kind: fleet.GaveUp,
		},
		"hangs until the end": {verb: hangs, spent: 10 * time.Second, final: true, kind: fleet.GaveUp},
		"ready after all": {
			verb: hangs, spent: 10 * time.Second, found: whole(attempt("a-t0-1")), views: ready,
		},
		"ready although refused": {
			verb: fails(backend.ErrConflict), found: whole(attempt("a-t0-1")), views: ready,
		},
		"not stamped in time": {
			verb: hangs, spent: 10 * time.Second, found: half, final: true, kind: fleet.GaveUp,
		},
		"takes no pods in time": {
			verb: hangs, spent: 10 * time.Second, found: starting, final: true, kind: fleet.GaveUp,
		},
		"on its way out": {
			verb: fails(backend.ErrDenied), found: leaving, final: true, kind: fleet.Refused,
		},
		"ready by another attempt": {
			verb: fails(backend.ErrDenied), found: later, final: true, kind: fleet.Refused,
		},
		"ready on another provider, before a backup was restored": {
			verb: fails(backend.ErrConflict), found: elsewhere, final: true, kind: fleet.Refused,
		},
		"not peered: it is repaired": {verb: fails(backend.ErrNotPeered), holds: broken},
		"not peered, and the budget is": {
			verb: fails(backend.ErrNotPeered), spent: 10 * time.Second, holds: broken, final: true, kind: fleet.GaveUp,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some cases wait for a second
			m := &messages{}
			if c.deaf {
				m.fails = map[string]error{"milan": errors.New("no answer")}
			}
			a := &activities.Activities{
				Backend: &world{verb: c.verb, found: []fleet.Found{c.found}}, Messages: m, Making: activities.NewLimiter(1),
				Entities: running(), Now: (&wall{at: noon}).now,
			}
			err := ended(t, a.Join, joining(), spent(c.spent).env)
			require.Equal(t, c.views, m.views)
			require.Equal(t, c.holds, m.holds)
			_, taken := a.Making.Acquire("milan")
			require.NoError(t, taken, "its place is released")
			if c.views != nil {
				require.NoError(t, err)
				return
			}
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, c.final, app.NonRetryable(), "%v", err)
			if kind, f := activities.VerdictOf(err, "milan"); c.final {
				require.Equal(t, c.kind, kind)
				require.Equal(t, "milan", f.Provider)
			}
		})
	}
}

// Join runs once or several times until its budget is used up. Then it gives up.
func TestJoinsBudgetIsBoundedByItsClock(t *testing.T) {
	in := joining()
	in.Node.Booking.Spec.Budgets.Join.Duration = 8 * time.Minute
	var left time.Duration
	w := &world{verb: func(ctx context.Context) error {
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		left = time.Until(deadline)
		return backend.ErrUnreachable
	}}
	b := &beats{before: &activities.Beat{Spent: 4 * time.Minute, At: noon.Add(-time.Hour)}}
	a := &activities.Activities{Backend: w, Messages: &messages{}, Entities: running(), Now: (&wall{at: noon}).now}
	require.Error(t, ended(t, a.Join, in, b.env))
	require.InDelta(t, (4*time.Minute - 10*time.Second).Seconds(), left.Seconds(), 5)
}

// A node is complete when its Join is cancelled. Join still reports the node, because CA may already use it.
func TestCompleteNodeIsReportedDespiteCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := &messages{}
	w := &world{found: []fleet.Found{whole(attempt("a-t0-1"))},
		verb: func(ctx context.Context) error { cancel(); return hangs(ctx) }}
	a := &activities.Activities{Backend: w, Messages: m, Entities: running()}
	require.NoError(t, ended(t, a.Join, joining(), under(ctx)))
	require.Equal(t, ready, m.views)
}

// The duration of each try counts towards the budget, independently of the result of the try.
func TestEachTryOfJoinCounts(t *testing.T) {
	clock := &wall{at: noon}
	a := &activities.Activities{Messages: &messages{}, Entities: running(), Now: clock.now,
		Backend: &world{verb: fails(backend.ErrNotPeered), after: func() { clock.pass(10 * time.Second) }}}
	kind, f := activities.VerdictOf(ended(t, a.Join, joining()), "milan")
	require.Equal(t, fleet.GaveUp, kind)
	require.Contains(t, f.Message, "not done within 10s")
	require.Equal(t, fleet.CodeRefused, f.Code)
	require.Equal(t, "peering", f.Stage)
}
