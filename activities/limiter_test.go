package activities_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

func TestLimiter(t *testing.T) {
	l := activities.NewLimiter(2)
	first, ok := l.Take("milan")
	require.True(t, ok)
	_, ok = l.Take("milan")
	require.True(t, ok)
	_, ok = l.Take("milan")
	require.False(t, ok)
	_, ok = l.Take("rome")
	require.True(t, ok, "one provider's places are not another's")
	first()
	_, ok = l.Take("milan")
	require.True(t, ok)

	var none *activities.Limiter
	for range 100 {
		release, ok := none.Take("milan")
		require.True(t, ok)
		release()
	}
}

// A step that finds no place costs nobody anything: it comes again, nothing is asked of the provider, and the budget of
// the step does not run.
func TestAStepWithoutAPlace(t *testing.T) {
	l := activities.NewLimiter(1)
	_, ok := l.Take("milan")
	require.True(t, ok)
	at := attempt("a-t0-1")
	a := &activities.Activities{Making: l, Entities: running()} // no backend: a call would panic
	for name, err := range map[string]error{
		"Establish": ended(t, a.Establish, fleet.PeeringInput{Provider: at.Provider}, noBeat(t)),
		"Join":      ended(t, a.Join, activities.JoinInput{Node: backend.NodeSpec{Attempt: at}}, noBeat(t)),
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
	a.Messages, a.Entities = &messages{}, running("rome")
	require.NoError(t, ended(t, a.Establish, fleet.PeeringInput{Provider: other.Provider}))
	require.NoError(t, ended(t, a.Establish, fleet.PeeringInput{Provider: other.Provider}), "the place is given back")
}
