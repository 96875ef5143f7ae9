package activities_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

func cpu(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

var spec = fleet.InstanceSpec{ID: "a", Shape: cpu("2")}

// chosen runs Discover and Select as a scale-out does. It returns the chosen provider, or "" when no offer fits.
func chosen(t *testing.T, a *activities.Activities, in activities.DiscoverInput) (string, activities.SelectOutput) {
	t.Helper()
	in.Spec = spec
	found, err := run[activities.DiscoverOutput](t, a.Discover, in)
	require.NoError(t, err)
	out, err := run[activities.SelectOutput](t, a.Select, activities.SelectInput{
		Spec: spec, Found: found, Refused: in.Refused,
		View: fleet.View{Instance: in.Instance, Phase: fleet.Selecting, Sequence: 2},
	})
	require.NoError(t, err)
	if out.Offer == nil {
		return "", out
	}
	return out.Offer.Provider, out
}

// Every offer with free capacity costs more than the group may spend. Select chooses none and fails with
// CodeSpending. If an offer within the limit is full, Select fails with CodeNoCapacity, because that offer may have
// free capacity later.
func TestSelectStaysWithinTheSpendingLimit(t *testing.T) {
	spec := spec
	spec.MaxPrice = 1
	dear := choice.Candidate{Offer: fleet.Offer{Provider: "dear", Lendable: cpu("8"), Price: 1.5}}
	full := choice.Candidate{Offer: fleet.Offer{Provider: "full", Lendable: cpu("8"), Price: 1}, Free: cpu("1")}
	a := &activities.Activities{Messages: &messages{}}
	for code, candidates := range map[fleet.Code][]choice.Candidate{
		fleet.CodeSpending: {dear}, fleet.CodeNoCapacity: {dear, full}, fleet.CodeNoOffer: {},
	} {
		out, err := run[activities.SelectOutput](t, a.Select, activities.SelectInput{Spec: spec,
			Found: activities.DiscoverOutput{Candidates: candidates}})
		require.NoError(t, err)
		require.Nil(t, out.Offer)
		require.Equal(t, code, out.Failure.Code)
	}
}

// Select sends the chosen offer to the group, and the request for a hold to the provider, before the driver
// continues.
func TestSelectSendsViewAndAcquire(t *testing.T) {
	offer := fleet.Offer{Name: "m", Provider: "milan", Lendable: cpu("8"), Labels: map[string]string{"country": "it"},
		Prices: map[corev1.ResourceName]float64{"cpu": 0.25}}
	m := &messages{}
	a := &activities.Activities{Catalog: offering{offers: []fleet.Offer{offer}}, Entities: &entities{}, Messages: m}
	provider, out := chosen(t, a, activities.DiscoverInput{Instance: "a-t0-1"})
	require.Equal(t, "milan", provider)
	require.Nil(t, out.Failure)
	require.Equal(t, []fleet.View{{
		Instance: "a-t0-1", Phase: fleet.Peering, Sequence: 2, Attempt: 1,
		Offer: &fleet.Offer{Name: "m", Provider: "milan", Hourly: 0.5}, Reason: "fits at price 0.5 USD",
	}}, m.views)
	require.InDelta(t, 0.5, out.Offer.Hourly, 0)
	require.Len(t, m.holds, 1)
	acquire := m.holds[0]
	require.Equal(t, fleet.HoldAcquire, acquire.Kind)
	require.Equal(t, "lca-a-t0-1-1", acquire.Key)
	require.Equal(t, offer, *acquire.Offer, "the provider receives its offer unchanged")
	require.Equal(t, "2", acquire.Shape.Cpu().String())
	require.Equal(t, spec.Budgets.WithDefaults().Peer, acquire.Budget)

	m.fails = map[string]error{"milan": errors.New("no answer")}
	err := ended(t, a.Select, activities.SelectInput{Spec: spec,
		Found: activities.DiscoverOutput{Candidates: []choice.Candidate{{Offer: offer}}}})
	require.ErrorContains(t, err, "no answer", "a choice that was not sent is no choice")
}

func TestSelectReportsWhyNothingFits(t *testing.T) {
	full := fleet.ProviderSnapshot{ID: "milan", Offer: &fleet.Offer{Lendable: cpu("8")}, Free: cpu("1"),
		Holds: []string{"lca-b-t0-1-1"}}
	milan := fleet.Offer{Name: "m", Provider: "milan", Lendable: cpu("8")}
	for name, c := range map[string]struct {
		offers  []fleet.Offer
		refused []string
		code    fleet.Code
		full    bool
		says    string
	}{
		"no offer": {code: fleet.CodeNoOffer, says: "no provider for group a: offer rome: no cluster id"},
		"too small": {
			offers: []fleet.Offer{{Provider: "milan", Lendable: cpu("1")}}, code: fleet.CodeNoOffer,
			says: "milan: needs cpu 2, ",
		},
		"full": {
			offers: []fleet.Offer{milan}, code: fleet.CodeNoCapacity, full: true, says: "milan: needs cpu 2, 1 of 8 is free",
		},
		"refused": {
			offers: []fleet.Offer{milan}, refused: []string{"milan"}, code: fleet.CodeNoOffer,
			says: "milan: an attempt of this instance on this provider has failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := &messages{}
			a := &activities.Activities{
				Catalog:  offering{offers: c.offers, problems: []discovery.Problem{{Offer: "rome", Message: "no cluster id"}}},
				Entities: &entities{providers: []fleet.ProviderSnapshot{full}}, Messages: m,
			}
			provider, out := chosen(t, a, activities.DiscoverInput{Instance: "a-t0-1", Refused: c.refused})
			require.Empty(t, provider)
			require.Equal(t, c.code, out.Failure.Code)
			require.Equal(t, c.full, out.Decision.Full)
			require.Contains(t, out.Failure.Message, c.says)
			require.Empty(t, m.views, "no view is sent")
		})
	}
}

// If no offer fits, CA logs an error. It contains the number of rejected offers for each reason.
func TestErrorCountsRejectedOffers(t *testing.T) {
	for says, counts := range map[string]map[string]int{
		"no provider for group a: there is no offer":             nil,
		"no provider for group a: filtered out: map[selector:3]": {"selector": 3},
	} {
		in := activities.SelectInput{Spec: spec, Found: activities.DiscoverOutput{Counts: counts}}
		out, err := run[activities.SelectOutput](t, (&activities.Activities{}).Select, in)
		require.NoError(t, err)
		require.Equal(t, says, out.Failure.Message)
	}
}

// The instances of a burst choose before any instance has a hold. Each instance leaves enough capacity for the
// instances that choose before it.
func TestBurstLeavesRoomForInstancesAhead(t *testing.T) {
	var offers []fleet.Offer
	for n := range 10 {
		offers = append(offers, fleet.Offer{Name: fmt.Sprint("o", n), Provider: fmt.Sprint("p", n), Lendable: cpu("100")})
	}
	a := &activities.Activities{Catalog: offering{offers: offers}, Entities: &entities{}, Messages: &messages{}}
	count := map[string]int{}
	for ahead := range 50 {
		provider, _ := chosen(t, a, activities.DiscoverInput{Instance: fmt.Sprint("a-t0-", ahead+1),
			Rank: choice.Rank{Ahead: ahead, Name: "a"}})
		count[provider]++
	}
	require.Len(t, count, 10)
	for provider, n := range count {
		require.Equal(t, 5, n, provider)
	}
}

func TestBurstFillsTheCheaperOfferFirst(t *testing.T) {
	a := &activities.Activities{
		Catalog: offering{offers: []fleet.Offer{
			{Name: "dear", Provider: "dear", Lendable: cpu("100"), Price: 2}, {Name: "cheap", Provider: "cheap",
				Lendable: cpu("7"), Price: 1},
		}},
		Entities: &entities{}, Messages: &messages{},
	}
	var got []string
	for ahead := range 5 {
		provider, _ := chosen(t, a, activities.DiscoverInput{Instance: "a-t0-1", Rank: choice.Rank{Ahead: ahead, Name: "a"}})
		got = append(got, provider)
	}
	require.Equal(t, []string{"cheap", "cheap", "cheap", "dear", "dear"}, got)
}

// The group's own instances have taken capacity after the provider last published its state. A choice subtracts this
// capacity from the free capacity, too. It subtracts each hold only once.
func TestCapacityTakenByTheGroupCounts(t *testing.T) {
	milan := fleet.Offer{Name: "m", Provider: "milan", Lendable: cpu("8")}
	published := fleet.ProviderSnapshot{ID: "milan", Offer: &milan, Free: cpu("4"), Holds: []string{"lca-a-t0-1-1",
		"lca-b-t0-1-1"}}
	for name, c := range map[string]struct {
		providers []fleet.ProviderSnapshot
		offer     fleet.Offer
		taken     int
		free      string
		nodes     int
	}{
		"nothing known":        {offer: milan, free: "8"},
		"taken, not published": {offer: milan, taken: 2, free: "4", nodes: 2},
		"published":            {providers: []fleet.ProviderSnapshot{published}, offer: milan, free: "4", nodes: 2},
		"published and counted": {
			providers: []fleet.ProviderSnapshot{published}, offer: milan, taken: 1, free: "4", nodes: 2,
		},
		"one more since": {
			providers: []fleet.ProviderSnapshot{published}, offer: milan, taken: 2, free: "2", nodes: 3,
		},
		"the offer has grown": {
			providers: []fleet.ProviderSnapshot{published}, offer: fleet.Offer{Name: "m", Provider: "milan",
				Lendable: cpu("10")}, free: "6", nodes: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &activities.Activities{Catalog: offering{offers: []fleet.Offer{c.offer}},
				Entities: &entities{providers: c.providers}}
			out, err := run[activities.DiscoverOutput](t, a.Discover, activities.DiscoverInput{Spec: spec,
				Taken: map[string]int{"milan": c.taken}})
			require.NoError(t, err)
			require.Len(t, out.Candidates, 1)
			free := out.Candidates[0].Free
			if free == nil { // the provider offers its whole capacity
				free = c.offer.Lendable
			}
			require.Equal(t, c.free, free.Cpu().String())
			require.Equal(t, c.nodes, out.Candidates[0].Nodes)
		})
	}
}

// Discover builds its shortlist by the criteria of the group's Selection: the group's own nodes, the peering, and past
// failures.
func TestShortlistFollowsTheSelection(t *testing.T) {
	milan := fleet.Offer{Name: "m", Provider: "milan", Lendable: cpu("8")}
	published := fleet.ProviderSnapshot{ID: "milan", Offer: &milan, Free: cpu("4"), Phase: fleet.Established,
		Holds: []string{"lca-a-t0-1-1", "lca-b-t0-1-1"}}
	a := &activities.Activities{Catalog: offering{offers: []fleet.Offer{milan}},
		Entities: &entities{providers: []fleet.ProviderSnapshot{published}}}
	for taken, own := range map[int]int{0: 1, 1: 1, 3: 3} {
		out, err := run[activities.DiscoverOutput](t, a.Discover, activities.DiscoverInput{Spec: spec,
			Taken:    map[string]int{"milan": taken},
			Failures: map[string][]time.Time{"milan": {time.Now().Add(time.Hour)}, "rome": {time.Now()}}})
		require.NoError(t, err)
		require.Equal(t, own, out.Candidates[0].Own)
		require.True(t, out.Candidates[0].Warm)
		require.Equal(t, 1.0, out.Candidates[0].Failures)
	}
}

func TestDiscoverFailsWithoutACatalog(t *testing.T) {
	a := &activities.Activities{Catalog: offering{err: errors.New("no such file")}, Entities: &entities{}}
	require.ErrorContains(t, ended(t, a.Discover, activities.DiscoverInput{Spec: spec}), "list offers: no such file")
}

// books is a source of offers. It counts how often its offers are listed, and how many requests go to the clusters of
// these offers.
type books struct {
	mu            sync.Mutex
	listed, asked int
}

func (b *books) Name() string { return "books" }

func (b *books) List(context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listed++
	return []fleet.Offer{{Name: "m", Lendable: cpu("400"),
		Credentials: fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "ns", Name: "m", Key: "kubeconfig"}}}}, nil, nil
}

func (b *books) Identify(context.Context, fleet.Credentials) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	return "milan", nil
}

// While the market is published, a burst of scale-outs sends no requests to the sources or the providers. The market
// itself reads the sources every three seconds.
func TestBurstReadsOnlyTheMarket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &books{}
		shared := discovery.Share(discovery.Resolve(b, b, discovery.Options{}))
		_, _, err := shared.Within(0).Offers(t.Context()) // makes the market publish
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		a := &activities.Activities{Catalog: shared.Within(discovery.Recent), Entities: &entities{}, Now: time.Now}
		var burst sync.WaitGroup
		for n := range 100 {
			burst.Go(func() {
				out, err := a.Discover(t.Context(), activities.DiscoverInput{Instance: fmt.Sprint("a-t0-", n), Spec: spec})
				if err != nil || len(out.Candidates) != 1 {
					t.Errorf("instance %d: %v, %v", n, out, err)
				}
			})
		}
		burst.Wait()
		require.Equal(t, []int{1, 1}, []int{b.listed, b.asked})
	})
}

// An instance that chooses earlier gets its hold. It then no longer counts in Rank.Ahead, because the provider's
// state already shows the taken capacity.
func TestInstancesWithAHoldDoNotCountAsAhead(t *testing.T) {
	milan := fleet.Offer{Name: "m", Provider: "milan", Lendable: cpu("80"), MaxNodes: 4}
	published := fleet.ProviderSnapshot{ID: "milan", Offer: &milan, Free: cpu("70"),
		Holds: []string{"lca-a-t0-1-1", "lca-a-t0-2-1", "lca-a-t0-3-1", "lca-b-t0-1-1"}}
	offers := []fleet.Offer{milan}
	for n := range 6 { // rising prices, one place each: with n instances ahead, an instance takes place n
		id := fmt.Sprint("p", n)
		offers = append(offers, fleet.Offer{Name: id, Provider: id, Lendable: cpu("80"), MaxNodes: 1, Price: float64(n + 1)})
	}
	a := &activities.Activities{Catalog: offering{offers: offers},
		Entities: &entities{providers: []fleet.ProviderSnapshot{published}}}
	for _, c := range []struct{ ahead, taken, want int }{
		{ahead: 5, taken: 0, want: 2},
		{ahead: 5, taken: 1, want: 3},
		{ahead: 5, taken: 3, want: 5},
		{ahead: 5, taken: 9, want: 5},
		{ahead: 3, taken: 0, want: 0},
		{ahead: 1, taken: 0, want: 0},
	} {
		out, err := run[activities.DiscoverOutput](t, a.Discover, activities.DiscoverInput{Spec: spec,
			Rank: choice.Rank{Ahead: c.ahead, Name: "a"}, Taken: map[string]int{"milan": c.taken}})
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("p", c.want), out.Candidates[0].Offer.Provider, "%+v", c)
	}
}

// distant wraps entities and delays each of their answers by a round trip to Temporal.
type distant struct {
	*entities
	trip time.Duration
}

func (d distant) Provider(ctx context.Context, id string) (fleet.ProviderSnapshot, error) {
	pause := time.NewTimer(d.trip)
	defer pause.Stop()
	select {
	case <-pause.C:
		return d.entities.Provider(ctx, id)
	case <-ctx.Done():
		return fleet.ProviderSnapshot{}, fmt.Errorf("describe: %w: %w", fleet.ErrTemporal, fleet.ErrUnavailable)
	}
}

// All providers have free capacity. Discover takes one round trip to Temporal and reads only eight providers, for any
// number of offers.
func TestDiscoverCostsTheSameForAnyNumberOfOffers(t *testing.T) {
	for n, trip := range map[int]time.Duration{20: 250 * time.Millisecond, 60: 100 * time.Millisecond,
		150: 80 * time.Millisecond, 1000: 400 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var offers []fleet.Offer
			e := &entities{}
			for n := range n {
				id := fmt.Sprint("p", n)
				offers = append(offers, fleet.Offer{Name: id, Provider: id, Lendable: cpu("8")})
				e.providers = append(e.providers, fleet.ProviderSnapshot{ID: id, Offer: &offers[n], Free: cpu("8")})
			}
			began := time.Now()
			out, err := (&activities.Activities{Catalog: offering{offers: offers}, Entities: distant{e, trip}}).Discover(
				t.Context(), activities.DiscoverInput{Spec: spec})
			require.NoError(t, err)
			require.Equal(t, trip, time.Since(began))
			require.Len(t, e.asked, 8)
			require.Contains(t, e.asked, out.Candidates[0].Offer.Provider)
		})
	}
}

// The best providers are full. Discover continues with the next ones. It counts a provider as full only after it has
// read the provider, so a search does not fail while another offer has free capacity.
func TestDiscoverContinuesPastFullProviders(t *testing.T) {
	for _, full := range []int{7, 8, 25, 999} {
		var offers []fleet.Offer
		e := &entities{}
		for n := range 1000 {
			id := fmt.Sprintf("p%03d", n)
			offers = append(offers, fleet.Offer{Name: id, Provider: id, Lendable: cpu("8"), Price: 1 + float64(n)})
			s := fleet.ProviderSnapshot{ID: id, Offer: &offers[n], Free: cpu("8")}
			if n < full {
				s.Free, s.Holds = cpu("1"), []string{"lca-b-t0-1-1"}
			}
			e.providers = append(e.providers, s)
		}
		a := &activities.Activities{Catalog: offering{offers: offers}, Entities: e, Messages: &messages{}}
		for searches := 1; ; searches++ {
			provider, _ := chosen(t, a, activities.DiscoverInput{Instance: "a-t0-1"})
			require.NotEmpty(t, provider)
			if provider == fmt.Sprintf("p%03d", full) {
				read := slices.Compact(slices.Sorted(slices.Values(e.asked)))
				require.Len(t, read, len(e.asked), "nothing is read twice")
				require.LessOrEqual(t, len(e.asked), full+20*searches)
				break
			}
			require.Greater(t, full, 60*searches, "a search reads 68 before it chooses what it has not read")
			_, err := e.Provider(t.Context(), provider) // the next search reads the refusal
			require.NoError(t, err)
		}
	}
}

// This worker remembers that a provider is full. If Discover finds no other provider and the remembered state is
// older than 20 seconds, it reads this provider again.
func TestRememberedFullProviderIsReadAgain(t *testing.T) {
	milan := fleet.Offer{Name: "m", Provider: "milan", Lendable: cpu("8")}
	for age, provider := range map[time.Duration]string{10 * time.Second: "", 30 * time.Second: "milan"} {
		e := &entities{providers: []fleet.ProviderSnapshot{{ID: "milan", Offer: &milan, Free: cpu("8")}}}
		full := fleet.ProviderSnapshot{ID: "milan", Offer: &milan, Free: cpu("1"), Holds: []string{"lca-b-t0-1-1"}}
		a := &activities.Activities{Catalog: offering{offers: []fleet.Offer{milan}}, Messages: &messages{},
			Entities: remembering{e, full, age}}
		got, out := chosen(t, a, activities.DiscoverInput{Instance: "a-t0-1"})
		require.Equal(t, provider, got, "%v", out.Failure)
	}
}

// remembering wraps entities. It returns one remembered state until that state is read again.
type remembering struct {
	*entities
	state fleet.ProviderSnapshot
	age   time.Duration
}

func (r remembering) Remembered(id string) (fleet.ProviderSnapshot, time.Duration) {
	if s, age := r.entities.Remembered(id); age < time.Minute {
		return s, age
	}
	return r.state, r.age
}

// A scale-out of this worker has chosen a provider that has capacity for one node. No other scale-out of this worker
// chooses this provider before the provider has published or refused the hold. Afterwards the provider's published
// capacity counts again.
func TestChosenPlaceIsNotChosenTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offers []fleet.Offer
		e := &entities{}
		for n := range 100 {
			id := fmt.Sprintf("p%02d", n)
			offers = append(offers, fleet.Offer{Name: id, Provider: id, Lendable: cpu("2"), Price: 1 + float64(n)})
		}
		a := &activities.Activities{Catalog: offering{offers: offers}, Entities: e, Messages: &messages{}, Now: time.Now}
		for n := range 50 {
			provider, _ := chosen(t, a, activities.DiscoverInput{Instance: fmt.Sprint("a-t0-", n)})
			require.Equal(t, fmt.Sprintf("p%02d", n), provider)
		}
		provider, _ := chosen(t, a, activities.DiscoverInput{Instance: "a-t0-7"})
		require.Equal(t, "p07", provider, "its own first choice is free again")
		time.Sleep(10 * time.Second) // in the fake clock; no provider published a hold: all requests were refused
		_, err := e.Provider(t.Context(), "p00")
		require.ErrorIs(t, err, fleet.ErrNotRunning)
		e.asked = nil
		provider, _ = chosen(t, a, activities.DiscoverInput{Instance: "a-t0-100"})
		require.Equal(t, "p00", provider)
		require.LessOrEqual(t, len(e.asked), 8)
	})
}

// A hundred scale-outs discover at the same time, and select later. Each has another best candidate.
func TestConcurrentDiscoversShareNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offers []fleet.Offer
		for n := range 200 {
			id := fmt.Sprintf("p%03d", n)
			offers = append(offers, fleet.Offer{Name: id, Provider: id, Lendable: cpu("2"), Price: 1 + float64(n)})
		}
		a := &activities.Activities{Catalog: offering{offers: offers}, Entities: &entities{}, Messages: &messages{},
			Now: time.Now}
		discovered := make([]activities.DiscoverOutput, 100)
		var calls sync.WaitGroup
		for n := range discovered {
			calls.Go(func() {
				var err error
				in := activities.DiscoverInput{Instance: fmt.Sprint("a-t0-", n), Spec: spec}
				discovered[n], err = a.Discover(t.Context(), in)
				require.NoError(t, err)
			})
		}
		calls.Wait()
		best := map[string]bool{}
		for _, d := range discovered {
			best[d.Candidates[0].Offer.Provider] = true
		}
		require.Len(t, best, len(discovered))
		require.True(t, best["p000"] && best["p099"], "the cheapest providers")

		time.Sleep(10 * time.Second) // in the fake clock; no scale-out has selected a provider
		out, err := a.Discover(t.Context(), activities.DiscoverInput{Instance: "a-t0-100", Spec: spec})
		require.NoError(t, err)
		require.Equal(t, "p000", out.Candidates[0].Offer.Provider)
	})
}

// One worker discovers a provider for an instance, and another worker selects it. When the provider has published the
// hold, the first worker counts the instance once.
func TestPlaceSelectedElsewhereCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		milan := fleet.Offer{Name: "m", Provider: "milan", Lendable: cpu("4")}
		e := &entities{}
		a := &activities.Activities{Catalog: offering{offers: []fleet.Offer{milan}}, Entities: e, Messages: &messages{},
			Now: time.Now}
		_, err := a.Discover(t.Context(), activities.DiscoverInput{Instance: "a-t0-1", Spec: spec})
		require.NoError(t, err)
		time.Sleep(3 * time.Second) // in the fake clock
		e.providers = []fleet.ProviderSnapshot{{ID: "milan", Offer: &milan, Free: cpu("2"), Holds: []string{"lca-a-t0-1-1"}}}
		provider, _ := chosen(t, a, activities.DiscoverInput{Instance: "a-t0-2"})
		require.Equal(t, "milan", provider)
	})
}

// A scale-out chose the last free place, and was cancelled. Another scale-out gets the place after twenty seconds.
func TestAbandonedChoiceIsFreeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		milan := fleet.Offer{Name: "m", Provider: "milan", Lendable: cpu("2")}
		a := &activities.Activities{Catalog: offering{offers: []fleet.Offer{milan}},
			Entities: &entities{}, Messages: &messages{}, Now: time.Now}
		chosen(t, a, activities.DiscoverInput{Instance: "a-t0-1"})
		provider, out := chosen(t, a, activities.DiscoverInput{Instance: "a-t0-2"})
		require.Empty(t, provider)
		require.Equal(t, fleet.CodeNoCapacity, out.Failure.Code)
		time.Sleep(20 * time.Second) // in the fake clock
		provider, _ = chosen(t, a, activities.DiscoverInput{Instance: "a-t0-2"})
		require.Equal(t, "milan", provider)
	})
}

// In a burst, searches do not read again the state of a provider that another search has just read. An instance that
// this provider has refused reads it again.
func TestFreshStateIsNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &entities{}
		milan := fleet.Offer{Name: "m", Provider: "milan", Lendable: cpu("80")}
		a := &activities.Activities{Catalog: offering{offers: []fleet.Offer{milan}},
			Entities: e, Messages: &messages{}, Now: time.Now}
		for n := range 10 {
			chosen(t, a, activities.DiscoverInput{Instance: fmt.Sprint("a-t0-", n)})
		}
		require.Len(t, e.asked, 1)
		chosen(t, a, activities.DiscoverInput{Instance: "a-t0-7"})
		require.Len(t, e.asked, 2)
		time.Sleep(2 * time.Second) // in the fake clock
		chosen(t, a, activities.DiscoverInput{Instance: "a-t0-10"})
		require.Len(t, e.asked, 3)
	})
}

// A provider without a running entity has no holds. If the state of a provider cannot be read, Discover uses only its
// offer. The provider's entity then accepts or refuses the request for a hold.
func TestUnreadProviderIsJudgedByItsOffer(t *testing.T) {
	for _, err := range []error{fleet.ErrUnavailable, errors.New("no answer")} {
		e := running("milan")
		e.err = err
		a := &activities.Activities{Entities: e,
			Catalog: offering{offers: []fleet.Offer{{Name: "m", Provider: "milan", Lendable: cpu("8")}}}}
		out, err := run[activities.DiscoverOutput](t, a.Discover, activities.DiscoverInput{Spec: spec})
		require.NoError(t, err)
		require.Len(t, out.Candidates, 1)
	}
}

// The result of a Discover becomes part of the history, so its size is bounded.
func TestDiscoverIsBounded(t *testing.T) {
	var c offering
	for n := range 3 * choice.MaxCandidates {
		c.offers = append(c.offers, fleet.Offer{Name: fmt.Sprint(n), Provider: fmt.Sprint("p", n), Lendable: cpu("1")})
		c.problems = append(c.problems, discovery.Problem{Offer: fmt.Sprint("q", n), Message: "broken"})
	}
	a := &activities.Activities{Catalog: c, Entities: &entities{}}
	out, err := run[activities.DiscoverOutput](t, a.Discover, activities.DiscoverInput{Spec: spec})
	require.NoError(t, err)
	require.Len(t, out.Candidates, choice.MaxCandidates)
	require.Equal(t, 3*choice.MaxCandidates, out.Counts[string(choice.FilterFit)])
	require.Len(t, out.Problems, choice.MaxCandidates+1)
	require.Equal(t, "and 40 more", out.Problems[choice.MaxCandidates])
}

// Discover reports at most choice.MaxCandidates problems, and the number of further problems. The order of the
// sources does not change the order of the problems.
func TestProblemsAreBounded(t *testing.T) {
	for n, last := range map[int]string{
		0: "", 1: "offer q00: broken", choice.MaxCandidates: "offer q19: broken", choice.MaxCandidates + 1: "and 1 more",
	} {
		var c offering
		for i := range n {
			c.problems = append(c.problems, discovery.Problem{Offer: fmt.Sprintf("q%02d", n-1-i), Message: "broken"})
		}
		a := &activities.Activities{Catalog: c, Entities: &entities{}}
		out, err := run[activities.DiscoverOutput](t, a.Discover, activities.DiscoverInput{Spec: spec})
		require.NoError(t, err)
		if n == 0 {
			require.Empty(t, out.Problems)
			continue
		}
		require.Equal(t, "offer q00: broken", out.Problems[0])
		require.Equal(t, last, out.Problems[len(out.Problems)-1])
	}
}
