package choice_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// rowTexts renders the rows of a ranking in a short form.
func rowTexts(rows []fleet.StandbyRow) (texts []string) {
	for _, r := range rows {
		text := r.Offer.Provider
		for _, word := range []struct {
			is   bool
			text string
		}{{!r.Fits, "full"}, {r.Warm, "warm"}, {!r.Offers, "offers nothing"}, {r.State != "", string(r.State)},
			{r.Excluded != "", "out by " + r.Excluded}} {
			if word.is {
				text += " " + word.text
			}
		}
		texts = append(texts, text)
	}
	return texts
}

func TestStandbysAreRanked(t *testing.T) {
	full := func(c *choice.Candidate) { c.Offer.MaxNodes, c.Nodes = 1, 1 }
	in := func(phase fleet.PeeringPhase) fleet.ProviderSnapshot { return fleet.ProviderSnapshot{Phase: phase} }
	held := func(provider string, state fleet.HoldState) (fleet.Standby, fleet.ProviderSnapshot) {
		h := fleet.Standby{Provider: provider, Key: fleet.StandbyKey("g", "e", 1)}
		return h, fleet.ProviderSnapshot{Phase: fleet.Established, Standby: map[string]fleet.HoldState{h.Key: state}}
	}
	q := fleet.StandbyQuestion{Spec: chooseSpec}
	q.Standby = 1
	of := []choice.Candidate{candidate("a", 5), candidate("b", 4), candidate("c", 3), candidate("d", 2, full),
		candidate("e", 1, func(c *choice.Candidate) { c.Offer.Labels = nil }), candidate("f", 0.5)}
	states := map[string]fleet.ProviderSnapshot{"f": in(fleet.CoolOff), "b": in(fleet.Removing),
		"c": {Standing: fleet.Standing{Access: fleet.AccessSilent}}}
	rank := func(peers ...string) []string {
		var known []fleet.Provider
		for _, id := range peers {
			known = append(known, fleet.Provider{ID: id})
		}
		return rowTexts(choice.RankStandby(q, of, states, known, chooseAt))
	}
	require.Equal(t, []string{"b", "a"}, rank(), "those that fit and answer, and do not rest")
	of = append(of, candidate("x", 6), candidate("y", 7))
	require.Equal(t, []string{"b", "a", "y warm"}, rank("y", "e"), "one more than is wanted, and what is peered")

	for state, want := range map[fleet.HoldState]string{"": "d full", fleet.HoldGranted: "d full granted"} {
		h, snapshot := held("d", state)
		q.Held, states["d"] = []fleet.Standby{h}, snapshot
		require.Equal(t, []string{"b", "a", want}, rank(), "each hold is listed")
	}
	h, snapshot := held("e", fleet.HoldGranted)
	q.Held, states["e"] = []fleet.Standby{h}, snapshot
	require.Equal(t, []string{"b", "a", "e full granted out by selector"}, rank(), "also where none may be")
	h, snapshot = held("a", fleet.HoldGranted)
	q.Held, states["a"], q.Spec.MaxPrice = []fleet.Standby{h}, snapshot, 4.5
	require.Equal(t, []string{"b", "a full granted out by spending"}, rank(), "where no node may be made")
	delete(states, "a")
	q.Spec.MaxPrice = 0
	h, snapshot = held("z", fleet.HoldWaiting)
	q.Held, states["z"] = []fleet.Standby{h}, snapshot
	require.Equal(t, []string{"b", "a", "z full offers nothing waiting"}, rank(), "or nothing is offered")

	q.Held = nil
	q.Spec.Selection = &fleet.Selection{Price: 1, Warm: 5}
	require.Equal(t, []string{"b", "a", "y warm"}, rank("y"), "each would be peered")
	for n := range 100 {
		of = append(of, candidate(fmt.Sprint("p", n), float64(10+n)))
		states[fmt.Sprint("p", n)] = in(fleet.Established)
	}
	var peers []string
	for n := range 100 {
		peers = append(peers, fmt.Sprint("p", n))
	}
	require.Len(t, rank(peers...), choice.MaxCandidates)
}

// A standby that the group holds is excluded if the group may not use its provider, for example because the provider
// is cordoned. An expired offer and a lack of free capacity do not exclude it.
func TestUnusableStandbysAreExcluded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*choice.Candidate)
		spec   func(*fleet.InstanceSpec)
		want   fleet.StandbyRow
	}{
		"fits":    {want: fleet.StandbyRow{Offers: true, Fits: true}},
		"expired": {change: func(c *choice.Candidate) { c.Offer.Expires = &chooseAt }},
		"full": {change: func(c *choice.Candidate) { c.Free = amounts("cpu", "0") },
			want: fleet.StandbyRow{Offers: true}},
		"taken": {change: func(c *choice.Candidate) { c.Offer.MaxNodes, c.Nodes = 1, 1 },
			want: fleet.StandbyRow{Offers: true}},
		"provider": {spec: func(s *fleet.InstanceSpec) { s.Provider = "q" }, want: out(choice.FilterProvider)},
		"architecture": {change: func(c *choice.Candidate) {
			c.Offer.Labels = map[string]string{"country": "it", "kubernetes.io/arch": "arm64"}
		}, want: out(choice.FilterArchitecture)},
		"refusing": {change: func(c *choice.Candidate) { c.Refusing = "no" }, want: out(choice.FilterRefusing)},
		"cordoned": {change: func(c *choice.Candidate) { c.Cordoned = true }, want: out(choice.FilterCordoned)},
		"selector": {change: func(c *choice.Candidate) { c.Offer.Labels = nil }, want: out(choice.FilterSelector)},
		"currency": {change: func(c *choice.Candidate) { c.Offer.Currency = "EUR" }, want: out(choice.FilterCurrency)},
		"spending": {spec: func(s *fleet.InstanceSpec) { s.MaxPrice = 0.5 },
			want: out(choice.FilterSpending)},
	} {
		one, q := candidate("p", 1), fleet.StandbyQuestion{Spec: chooseSpec, Held: []fleet.Standby{{Provider: "p"}}}
		q.Spec.Selection = &fleet.Selection{Warm: 5}
		if c.change != nil {
			c.change(&one)
		}
		if c.spec != nil {
			c.spec(&q.Spec)
		}
		asked := []choice.Candidate{one}
		rows := choice.RankStandby(q, asked, nil, nil, chooseAt)
		require.Len(t, rows, 1)
		require.Equal(t, []choice.Candidate{one}, asked, "the input is unchanged")
		require.Equal(t, map[bool]float64{true: 5}[c.want.Fits], rows[0].Score, "it would be peered: "+name)
		rows[0].Offer, rows[0].Price, rows[0].Score = fleet.Offer{}, 0, 0
		require.Equal(t, c.want, rows[0], name)
	}
}

func out(by choice.Filter) fleet.StandbyRow {
	return fleet.StandbyRow{Offers: true, Excluded: string(by)}
}
