package activities_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestLimiterBoundsStepsPerProvider(t *testing.T) {
	l := activities.NewLimiter(2)
	first, err := l.Acquire("milan")
	require.NoError(t, err)
	_, err = l.Acquire("milan")
	require.NoError(t, err)
	_, err = l.Acquire("milan")
	require.Error(t, err)
	_, err = l.Acquire("rome")
	require.NoError(t, err, "one provider's places are not another's")
	first()
	_, err = l.Acquire("milan")
	require.NoError(t, err)

	var none *activities.Limiter
	for range 100 {
		release, err := none.Acquire("milan")
		require.NoError(t, err)
		release()
	}
}

// The limiter permits no further step on the provider. A new step sends no request to the provider, uses no part of
// its budget, and is retried later.
func TestStepWithoutAPlaceUsesNoBudget(t *testing.T) {
	synctest.Test(t, testAStepWithoutAPlace)
}

func testAStepWithoutAPlace(t *testing.T) {
	l := activities.NewLimiter(1)
	_, err := l.Acquire("milan")
	require.NoError(t, err)
	at := attempt("a-t0-1")
	a := &activities.Activities{Making: l, Removing: l, Entities: running()} // without a backend, a call would panic
	unread := &activities.Activities{Making: l, Entities: &entities{err: errors.New("the group is read")}}
	for name, err := range map[string]error{
		"Establish":     ended(t, a.Establish, fleet.PeeringInput{Provider: at.Provider}, noBeat(t)),
		"Join":          ended(t, unread.Join, activities.JoinInput{Node: backend.NodeSpec{Attempt: at}}, noBeat(t)),
		"Drain":         ended(t, a.Drain, activities.DrainInput{Attempt: at}, noBeat(t)),
		"Return":        ended(t, a.Return, activities.ReturnInput{Attempt: at}, noBeat(t)),
		"RemovePeering": ended(t, a.RemovePeering, fleet.PeeringInput{Provider: at.Provider}, noBeat(t)),
	} {
		var app *temporal.ApplicationError
		require.ErrorAs(t, err, &app, name)
		require.Equal(t, activities.TypeBusy, app.Type(), name)
		require.False(t, app.NonRetryable(), name)
		require.NotZero(t, app.NextRetryDelay(), name)
	}
	other := at
	other.Provider.ID = "rome"
	a.Backend = &world{}
	a.Messages, a.Entities, a.Catalog = &messages{}, running("rome"), offering{}
	require.NoError(t, ended(t, a.Establish, fleet.PeeringInput{Provider: other.Provider}))
	require.NoError(t, ended(t, a.Establish, fleet.PeeringInput{Provider: other.Provider}), "the place is released")
	for range 2 {
		require.NoError(t, ended(t, a.RemovePeering, fleet.PeeringInput{Provider: other.Provider}), "likewise")
	}
}

// The limiter permits twenty concurrent steps on a provider. The provider hangs, and two hundred steps wait for one
// of these twenty places. The more steps wait, the less often each step tries, so that Temporal does not delay steps
// of other providers. As soon as the provider is healthy, the steps run as fast as the provider works.
func TestWaitingStepsTryLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places, waiting = 20, 200
		l := activities.NewLimiter(places)
		var healthy, asked, done atomic.Int64
		step := func() {
			for {
				release, err := l.Acquire("milan")
				if err == nil {
					for healthy.Load() == 0 {
						time.Sleep(time.Second)
					}
					time.Sleep(500 * time.Millisecond)
					release()
					done.Add(1)
					return
				}
				asked.Add(1)
				var app *temporal.ApplicationError
				require.ErrorAs(t, err, &app)
				require.GreaterOrEqual(t, app.NextRetryDelay(), time.Second)
				time.Sleep(app.NextRetryDelay())
			}
		}
		for range places + waiting {
			go step()
		}
		time.Sleep(time.Minute)
		before := asked.Load()
		time.Sleep(time.Minute)
		require.Less(t, asked.Load()-before, int64(12*60), "askings in a minute")
		healthy.Store(1)
		time.Sleep(30 * time.Second)
		require.EqualValues(t, places+waiting, done.Load())
	})
}

// Waiting steps try again at different times, so that about one step tries for each place that becomes free. The
// pause of a step is bounded. When all places are free, the limiter forgets for how long they were taken.
func TestTriesOfWaitingStepsAreSpread(t *testing.T) {
	for name, c := range map[string]struct {
		most  int
		held  time.Duration // the time for which the released place was occupied
		all   bool          // all places are released before they are taken again
		apart time.Duration
	}{
		"short steps":      {most: 2, held: 10 * time.Millisecond, apart: 25 * time.Millisecond},
		"steps of a while": {most: 10, held: 500 * time.Millisecond, apart: 50 * time.Millisecond},
		"long steps":       {most: 2, held: 10 * time.Second, apart: 100 * time.Millisecond},
		"long ago":         {most: 2, held: 10 * time.Second, all: true, apart: 25 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := activities.NewLimiter(c.most)
				var releases []func()
				take := func() {
					release, err := l.Acquire("milan")
					require.NoError(t, err)
					releases = append(releases, release)
				}
				for range c.most {
					take()
				}
				time.Sleep(c.held)
				given := releases[:1]
				if c.all {
					given = releases
				}
				for _, release := range given {
					release()
				}
				for range given {
					take()
				}
				for n := range 2000 {
					_, err := l.Acquire("milan")
					var app *temporal.ApplicationError
					require.ErrorAs(t, err, &app)
					require.Equal(t, min(time.Second+time.Duration(n)*c.apart, 30*time.Second), app.NextRetryDelay(), "step %d", n)
				}
			})
		})
	}
}
