package activities_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Inspect ranks the providers for standby peerings. Its result contains the holds that the providers publish, and the
// existing peerings. If it cannot read these, it fails, because otherwise a hold would count as lost.
func TestInspectReturnsHoldsAndPeerings(t *testing.T) {
	key := fleet.StandbyKey("a", "e", 1)
	published := running("milan", "turin")
	published.providers[0].Standby = map[string]fleet.HoldState{key: fleet.HoldGranted}
	w := &world{peers: []fleet.Provider{{ID: "turin"}}}
	a := &activities.Activities{Entities: published, Backend: w, Catalog: offering{offers: []fleet.Offer{
		{Name: "m", Provider: "milan", Lendable: cpu("8")}, {Name: "t", Provider: "turin", Lendable: cpu("8"), Price: 2},
		{Name: "r", Provider: "rome", Lendable: cpu("8"), Price: 3}}}}
	q := fleet.StandbyQuestion{Spec: spec, Held: []fleet.Standby{{Provider: "milan", Key: key}}}
	q.Standby = 2
	task := activities.Task{ID: 7, Kind: fleet.CommandStandby, Group: "a", Standby: &q}
	look := func() ([]fleet.Result, error) { return run[[]fleet.Result](t, a.Inspect, task) }
	out, err := look()
	require.NoError(t, err)
	rows := out[0].Standby
	require.Len(t, rows, 3)
	require.Equal(t, []any{"milan", fleet.HoldGranted, "turin", true, "rome", false}, []any{rows[0].Offer.Provider,
		rows[0].State, rows[1].Offer.Provider, rows[1].Warm, rows[2].Offer.Provider, rows[2].Warm})

	published.err = fleet.ErrUnavailable
	_, err = look()
	require.ErrorContains(t, err, "provider milan")
	published.err, w.err = nil, errors.New("the API server is away")
	_, err = look()
	require.ErrorContains(t, err, "the API server is away")
}

// Deliver sends a group's request for a hold to the provider.
func TestDeliverSendsHoldsToProviders(t *testing.T) {
	m := &messages{}
	a := &activities.Activities{Messages: m}
	hold := fleet.HoldRequest{Kind: fleet.HoldRelease, Key: fleet.StandbyKey("a", "e", 1)}
	out, err := run[[]fleet.Result](t, a.Deliver, []activities.Task{{ID: 3, Kind: fleet.CommandHold, Provider: "milan",
		Hold: &hold}})
	require.NoError(t, err)
	require.Equal(t, []fleet.Result{{ID: 3, Outcome: fleet.OutcomeDone}}, out)
	require.Equal(t, []fleet.HoldRequest{hold}, m.holds)
}

// A provider or the list of peerings cannot be read. Inspect fails if it needs the missing result. Otherwise it
// succeeds without the result.
func TestInspectAssumesNothingAboutUnreadProviders(t *testing.T) {
	broken := errors.New("no answer")
	offers := []fleet.Offer{{Name: "m", Provider: "milan", Lendable: cpu("8")}}
	held := []fleet.Standby{{Provider: "milan", Key: fleet.StandbyKey("a", "e", 1)}}
	for name, c := range map[string]struct {
		catalog offering
		holds   error // the error that a read of the providers' holds returns
		lists   error // the error that the list of the peerings returns
		held    []fleet.Standby
		says    string
	}{
		"no offers": {catalog: offering{err: broken}, says: "list offers: no answer"},
		"no holds": {
			catalog: offering{offers: offers}, holds: broken, held: held, says: "read holds of provider milan: no answer",
		},
		"no holds, none held":    {catalog: offering{offers: offers}, holds: broken},
		"a provider not running": {catalog: offering{offers: offers}, holds: fleet.ErrNotRunning, held: held},
		"no peerings":            {catalog: offering{offers: offers}, lists: broken, says: "list peerings: no answer"},
		"as many as it is to be": {catalog: offering{offers: offers}, lists: broken, held: held},
	} {
		t.Run(name, func(t *testing.T) {
			e := running("milan")
			e.err = c.holds
			q := fleet.StandbyQuestion{Spec: spec, Held: c.held}
			q.Standby = 1
			out, err := run[[]fleet.Result](t,
				(&activities.Activities{Entities: e, Backend: &world{err: c.lists}, Catalog: c.catalog}).Inspect,
				activities.Task{Kind: fleet.CommandStandby, Group: "a", Standby: &q})
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Len(t, out[0].Standby, 1)
		})
	}
}
