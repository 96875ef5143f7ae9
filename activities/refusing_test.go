package activities_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// refuser is a backend whose provider gives a fixed answer.
type refuser struct {
	world
	says *fleet.ProviderRefusal
	err  error
}

func (r *refuser) Refusal(context.Context, fleet.Provider) (*fleet.ProviderRefusal, error) {
	return r.says, r.err
}

func removed() *fleet.ProviderRefusal {
	return &fleet.ProviderRefusal{Kind: fleet.RefusingRemoved, Reason: "removed", Until: noon.Add(time.Hour).UTC()}
}

// When a provider refuses this cluster as a whole, any step of a peering reports the refusal to the provider's entity.
func TestRefusalIsReportedFromEachStep(t *testing.T) {
	says := &backend.RefusingError{ProviderRefusal: *removed()}
	m := &messages{}
	a := &activities.Activities{
		Backend: &world{verb: fails(says)}, Messages: m, Entities: running("milan"), Making: activities.NewLimiter(1),
		Catalog: offering{}, Now: (&wall{at: noon}).now,
	}
	in := fleet.PeeringInput{Provider: fleet.Provider{ID: "milan"}}
	err := ended(t, a.Establish, in)
	kind, _ := activities.VerdictOf(err, "milan")
	require.Equal(t, fleet.Refused, kind)
	require.Equal(t, removed(), activities.RefusalOf(err))
	require.Nil(t, activities.RefusalOf(errors.New("else")))

	require.NoError(t, ended(t, a.RemovePeering, in), "what is to be removed is")
	require.Equal(t, []fleet.PeeringReport{{Event: fleet.PeeringDone, Refusing: removed()}}, m.reports)
}

func TestRefusingProviderIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		says    *fleet.ProviderRefusal
		err     error
		outcome fleet.Outcome
	}{
		"it still does":    {says: removed(), outcome: fleet.OutcomeDone},
		"it has lifted it": {outcome: fleet.OutcomeDone},
		"it is silent":     {err: backend.ErrUnreachable, outcome: fleet.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			a := &activities.Activities{Backend: &refuser{says: c.says, err: c.err}, Catalog: offering{}}
			results, err := run[[]fleet.Result](t, a.Inspect, activities.Task{ID: 7, Kind: fleet.CommandRefusal,
				Provider: "milan",
				Peer:     &fleet.Provider{ID: "milan"}})
			require.NoError(t, err, "the entity requests the next check")
			require.Equal(t, c.outcome, results[0].Outcome)
			require.Equal(t, c.says, results[0].Refusing)
		})
	}
}
