package activities_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

func TestObserve(t *testing.T) {
	milan := fleet.Provider{ID: "milan"}
	for name, c := range map[string]struct {
		seen backend.Observation
		err  error
		want comparison.Evidence
	}{
		"well": {want: comparison.Evidence{Access: fleet.AccessGranted}},
		"closed": {
			seen: backend.Observation{Tenant: fleet.RefusingDrained, Absent: []string{"lca-a-t0-1-1"}, Message: "words"},
			want: comparison.Evidence{Access: fleet.AccessGranted, Tenant: fleet.RefusingDrained,
				Absent: []string{"lca-a-t0-1-1"}, Message: "words"},
		},
		"long words": {seen: backend.Observation{Tenant: fleet.RefusingDrained, Message: strings.Repeat("x", 1<<20)},
			want: comparison.Evidence{Access: fleet.AccessGranted, Tenant: fleet.RefusingDrained,
				Message: strings.Repeat("x", 299) + "…"}},
		"no answer": {err: fmt.Errorf("milan: %w", backend.ErrUnreachable),
			want: comparison.Evidence{Access: fleet.AccessSilent, Message: "milan: provider unreachable"}},
		"401": {err: fmt.Errorf("%w: %w", backend.ErrUnreachable, backend.ErrCredentials),
			want: comparison.Evidence{Access: fleet.AccessRefused, Message: "provider unreachable: credentials refused"}},
		"403": {err: fmt.Errorf("%w: %w", backend.ErrDenied, backend.ErrCredentials),
			want: comparison.Evidence{Access: fleet.AccessRefused, Message: "denied by the provider: credentials refused"}},
		"our own side": {err: errors.New("no answer of our own API server"),
			want: comparison.Evidence{Message: "no answer of our own API server"}},
		"wrong credentials": {err: fmt.Errorf("another cluster: %w", backend.ErrInvalid),
			want: comparison.Evidence{Message: "another cluster: invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &activities.Activities{Backend: &world{seen: c.seen, observe: c.err}, Catalog: offering{}}
			got, err := run[comparison.Evidence](t, a.Observe, milan)
			require.NoError(t, err)
			c.want.Provider = "milan"
			require.Equal(t, c.want, got)
		})
	}
}

// The credentials that the offer names now count: those that the peering was made with may have been replaced.
func TestObserveTakesTheOffersCredentials(t *testing.T) {
	w := &world{}
	now := fleet.Credentials{KubeconfigFile: "new"}
	a := &activities.Activities{Backend: w,
		Catalog: offering{offers: []fleet.Offer{{Provider: "milan", Credentials: now}}}}
	_, err := run[comparison.Evidence](t, a.Observe, fleet.Provider{ID: "milan",
		Credentials: fleet.Credentials{KubeconfigFile: "old"}})
	require.NoError(t, err)
	require.Equal(t, now, w.asked.Credentials)
}

func TestWitness(t *testing.T) {
	down := errors.New("no answer")
	offer := func(id string) fleet.Offer {
		return fleet.Offer{Provider: id, Credentials: fleet.Credentials{KubeconfigFile: id}}
	}
	peer := fleet.Provider{ID: "rome", Credentials: fleet.Credentials{KubeconfigFile: "rome"}}
	up := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		offers  []fleet.Offer
		peers   []fleet.Provider
		silent  []string
		answers []string // by credentials
		broken  error    // the catalog
		probe   func(context.Context) error
		want    bool
	}{
		"another offer answers": {offers: []fleet.Offer{offer("milan"), offer("turin")}, answers: []string{"turin"},
			want: true},
		"another peer answers":          {peers: []fleet.Provider{peer}, answers: []string{"rome"}, want: true},
		"nobody answers":                {offers: []fleet.Offer{offer("turin")}, peers: []fleet.Provider{peer}},
		"nobody answers but the probe":  {offers: []fleet.Offer{offer("turin")}, probe: up},
		"the only one":                  {offers: []fleet.Offer{offer("milan")}, answers: []string{"milan"}},
		"the only one, probe answers":   {offers: []fleet.Offer{offer("milan")}, probe: up, want: true},
		"the only one, probe is silent": {probe: func(context.Context) error { return down }},
		"two are silent, probe answers": {silent: []string{"milan", "turin"}, probe: up},
		"no catalog, a peer answers":    {broken: down, peers: []fleet.Provider{peer}, answers: []string{"rome"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.silent == nil {
				c.silent = []string{"milan"}
			}
			a := &activities.Activities{Backend: &world{peers: c.peers, answers: c.answers}, Probe: c.probe,
				Catalog: offering{offers: c.offers, err: c.broken}}
			got, err := run[bool](t, a.Witness, c.silent)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// A round that has looked at providers tells groups what is lost and providers what is wrong, has Nodes cordoned, and
// says whom the next one looks at.
func TestCompareJudges(t *testing.T) {
	row, found := row("a-t0-1", fleet.Ready), whole(attempt("a-t0-1"))
	row.Counts = true
	group := fleet.Snapshot{Group: "a", Instances: []fleet.InstanceView{row},
		Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "a"}}}
	milan := fleet.ProviderSnapshot{ID: "milan", Phase: fleet.Established, Holds: []string{"lca-a-t0-1-1"},
		Offer: &fleet.Offer{Credentials: fleet.Credentials{KubeconfigFile: "milan"}}}
	conditions, left := &activities.Conditions{}, []fleet.Orphan{{UID: "slice"}}
	round := func(tenant fleet.RefusingKind, before bool) (activities.Round, *messages, *world) {
		seen := comparison.Outlook{At: noon, Evidence: []comparison.Evidence{{Provider: "milan", Access: fleet.AccessGranted,
			Tenant: tenant}}}
		in := activities.Round{Number: 7, Began: noon, Outlook: seen, Sweep: comparison.Sweep{Orphans: left}}
		if before {
			in.Before = &seen
		}
		m, w := &messages{}, &world{found: []fleet.Found{found}}
		a := &activities.Activities{Backend: w, Messages: m, Conditions: conditions, Now: (&wall{at: noon}).now,
			Entities: &entities{groups: []fleet.Snapshot{group}, providers: []fleet.ProviderSnapshot{milan}}}
		out, err := run[activities.Round](t, a.Compare, in)
		require.NoError(t, err)
		return out, m, w
	}
	out, m, w := round(fleet.RefusingCordoned, true)
	require.Equal(t, []string{"provider/milan"}, m.told)
	require.Equal(t, fleet.RefusingCordoned, m.rows["provider/milan"].Standing.Tenant)
	require.Equal(t, []string{"cordon lca-a-t0-1-1"}, w.calls)
	require.Equal(t, []fleet.Provider{{ID: "milan", Credentials: fleet.Credentials{KubeconfigFile: "milan"}}}, out.Watched)
	require.Equal(t, fleet.RefusingCordoned, out.Outlook.Of("milan").Tenant, "the next round knows")
	require.Nil(t, out.Before)
	require.Equal(t, map[string]string{"milan": "TenantCordoned"}, conditions.Of(noon), "people are told")
	require.Equal(t, left, conditions.Orphans(noon))

	out, m, _ = round(fleet.RefusingDrained, true)
	require.ElementsMatch(t, []string{"group/a", "provider/milan"}, m.told)
	require.Equal(t, "a-t0-1", m.rows["group/a"].Lost[0].Instance)
	require.Equal(t, noon, out.Outlook.Sentenced)

	_, m, w = round(fleet.RefusingDrained, false)
	require.Empty(t, m.told, "once is not twice")
	require.Empty(t, w.calls)
}

// A look that is called off is no evidence, and who cannot be listed is not silent.
func TestObserveAndWitnessFail(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &activities.Activities{Backend: &world{observe: backend.ErrUnreachable}, Catalog: offering{}}
	_, err := run[comparison.Evidence](t, a.Observe, fleet.Provider{ID: "milan"}, under(ctx))
	require.Error(t, err)

	a.Backend = &world{err: errors.New("no answer")}
	_, err = run[bool](t, a.Witness, []string{"milan"})
	require.ErrorContains(t, err, "no answer")
}
