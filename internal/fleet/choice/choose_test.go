package choice_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

var chooseAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func amounts(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func candidate(provider string, price float64, change ...func(*choice.Candidate)) choice.Candidate {
	c := choice.Candidate{Offer: fleet.Offer{
		Name: "offer-" + provider, Provider: provider, Price: price, Epoch: "e1",
		Lendable: amounts("cpu", "8", "memory", "16Gi", "pods", "110"),
		Labels:   map[string]string{"country": "it"},
	}}
	for _, f := range change {
		f(&c)
	}
	return c
}

var chooseSpec = fleet.InstanceSpec{
	ID: "edge", Shape: amounts("cpu", "2", "memory", "4Gi", "pods", "50"),
	Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"country": "it"}},
}

func TestChooseFilters(t *testing.T) {
	type change = func(*choice.Candidate)
	at := func(d time.Duration) change {
		return func(c *choice.Candidate) { when := chooseAt.Add(d); c.Offer.Expires = &when }
	}
	removing := func(d time.Duration) change {
		return func(c *choice.Candidate) { c.Removing = chooseAt.Add(-d) }
	}
	free := func(l corev1.ResourceList) change { return func(c *choice.Candidate) { c.Free = l } }
	nodes := func(largest ...corev1.ResourceList) change {
		return func(c *choice.Candidate) { c.Offer.LargestNodes = largest }
	}
	architecture := func(name string) change {
		return func(c *choice.Candidate) {
			c.Offer.Labels = map[string]string{"country": "it", "kubernetes.io/arch": name}
		}
	}
	for name, c := range map[string]struct {
		spec    func(*fleet.InstanceSpec)
		change  change
		refused []string
		filter  choice.Filter
		reason  string
	}{
		"fits": {reason: "fits at price 0.5 USD"},
		"fits exactly": {change: free(amounts("cpu", "2", "memory", "4Gi", "pods", "50")),
			reason: "fits at price 0.5 USD"},
		"not expired yet":                   {change: at(time.Second), reason: "fits at price 0.5 USD"},
		"its last peering is being removed": {change: removing(30 * time.Second), reason: "fits at price 0.5 USD"},
		"the removal of its last peering hangs": {change: removing(31 * time.Second),
			reason: "fits at price 0.5 USD; it is the last choice, because its last peering is being removed since " +
				"2026-11-20T11:59:29Z"},
		"expired now": {change: at(0), filter: choice.FilterExpired,
			reason: "the offer expired at 2026-11-20T12:00:00Z"},
		"refused": {refused: []string{"p"}, filter: choice.FilterRefused,
			reason: "an attempt of this instance on this provider has failed"},
		"another is refused": {refused: []string{"q"}, reason: "fits at price 0.5 USD"},
		"of another provider": {spec: func(s *fleet.InstanceSpec) { s.Provider = "q" }, filter: choice.FilterProvider,
			reason: "the group is of provider q"},
		"of its provider": {spec: func(s *fleet.InstanceSpec) { s.Provider = "p" }, reason: "fits at price 0.5 USD"},
		"refuses": {change: func(c *choice.Candidate) { c.Refusing = "no" }, filter: choice.FilterRefusing,
			reason: "the provider refuses this cluster: no"},
		"refuses at length": {change: func(c *choice.Candidate) { c.Refusing = strings.Repeat("x", 1000) },
			filter: choice.FilterRefusing, reason: "the provider refuses this cluster: " + strings.Repeat("x", 264) + "…"},
		"cordoned": {change: func(c *choice.Candidate) { c.Cordoned = true }, filter: choice.FilterCordoned,
			reason: "an operator cordoned the provider"},
		"labels": {change: func(c *choice.Candidate) { c.Offer.Labels = map[string]string{"country": "fr"} },
			filter: choice.FilterSelector, reason: "labels {country=fr} do not match the group's selector country=it"},
		"another architecture": {change: architecture("arm64"), filter: choice.FilterArchitecture,
			reason: "its nodes are arm64, and the group's are amd64: set the label kubernetes.io/arch of the group"},
		"the default architecture": {change: architecture("amd64"), reason: "fits at price 0.5 USD"},
		"the group's architecture": {spec: func(s *fleet.InstanceSpec) {
			s.Labels = map[string]string{"kubernetes.io/arch": "arm64"}
		}, change: architecture("arm64"), reason: "fits at price 0.5 USD"},
		"an architecture that is not known": {spec: func(s *fleet.InstanceSpec) {
			s.Labels = map[string]string{"kubernetes.io/arch": "arm64"}
		}, reason: "fits at price 0.5 USD"},
		"no selector": {spec: func(s *fleet.InstanceSpec) { s.Selector = nil },
			change: func(c *choice.Candidate) { c.Offer.Labels = nil }, reason: "fits at price 0.5 USD"},
		"broken selector": {spec: func(s *fleet.InstanceSpec) {
			s.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
		}, filter: choice.FilterSelector, reason: `the group's selector cannot be used: "Like" is not a valid label selector operator`},
		"as large as a node of the provider": {change: nodes(amounts("cpu", "1", "memory", "64Gi", "pods", "110"),
			amounts("cpu", "2", "memory", "4Gi", "pods", "50")), reason: "fits at price 0.5 USD"},
		"larger than each node of the provider": {change: nodes(amounts("cpu", "1", "memory", "64Gi", "pods", "110"),
			amounts("cpu", "64", "memory", "4Gi", "pods", "49")), filter: choice.FilterNode,
			reason: "no node of the provider is large enough for the shape"},
		"too little cpu": {change: free(amounts("cpu", "1500m", "memory", "4Gi", "pods", "50")),
			filter: choice.FilterFit, reason: "needs cpu 2, 1500m of 8 is free"},
		"two lacks": {change: free(amounts("cpu", "1", "memory", "1Gi", "pods", "50")),
			filter: choice.FilterFit, reason: "needs cpu 2, 1 of 8 is free; needs memory 4Gi, 1Gi of 16Gi is free"},
		"nothing free": {change: free(corev1.ResourceList{}),
			filter: choice.FilterFit, reason: "needs cpu 2, 0 of 8 is free; needs memory 4Gi, 0 of 16Gi is free; needs pods " +
				"50, 0 of 110 is free"},
		"over-held": {change: free(amounts("cpu", "-1", "memory", "4Gi", "pods", "50")),
			filter: choice.FilterFit, reason: "needs cpu 2, -1 of 8 is free"},
		"no gpu": {spec: func(s *fleet.InstanceSpec) { s.Shape["nvidia.com/gpu"] = resource.MustParse("1") },
			filter: choice.FilterFit, reason: "needs nvidia.com/gpu 1, none is offered"},
		"free speaks of what is not lent": {
			spec:   func(s *fleet.InstanceSpec) { s.Shape["nvidia.com/gpu"] = resource.MustParse("1") },
			change: free(amounts("cpu", "2", "memory", "4Gi", "pods", "50", "nvidia.com/gpu", "4")),
			filter: choice.FilterFit, reason: "needs nvidia.com/gpu 1, none is offered"},
		"zero gpu": {spec: func(s *fleet.InstanceSpec) { s.Shape["nvidia.com/gpu"] = resource.MustParse("0") },
			reason: "fits at price 0.5 USD"},
		"unlimited disk": {spec: func(s *fleet.InstanceSpec) { s.Shape["ephemeral-storage"] = resource.MustParse("20Gi") },
			reason: "fits at price 0.5 USD"},
		"too little disk": {spec: func(s *fleet.InstanceSpec) { s.Shape["ephemeral-storage"] = resource.MustParse("20Gi") },
			change: func(c *choice.Candidate) { c.Offer.Lendable["ephemeral-storage"] = resource.MustParse("10Gi") },
			filter: choice.FilterFit, reason: "needs ephemeral-storage 20Gi, 10Gi of 10Gi is free"},
		"all nodes taken": {change: func(c *choice.Candidate) { c.Offer.MaxNodes, c.Nodes = 1, 1 },
			filter: choice.FilterMaxNodes, reason: "its maxNodes is 1, 1 taken"},
		"one node is left": {change: func(c *choice.Candidate) { c.Offer.MaxNodes, c.Nodes = 2, 1 },
			reason: "fits at price 0.5 USD"},
		"its currency is the default one": {change: func(c *choice.Candidate) { c.Offer.Currency = "USD" },
			reason: "fits at price 0.5 USD"},
		"its currency is the groups'": {spec: func(s *fleet.InstanceSpec) { s.Currency = "EUR" },
			change: func(c *choice.Candidate) { c.Offer.Currency = "EUR" }, reason: "fits at price 0.5 EUR"},
		"it names no currency": {spec: func(s *fleet.InstanceSpec) { s.Currency = "EUR" }, reason: "fits at price 0.5 EUR"},
		"filters in order": {
			change:  func(c *choice.Candidate) { at(0)(c); c.Offer.Labels = nil; c.Free = corev1.ResourceList{} },
			refused: []string{"p"}, filter: choice.FilterExpired, reason: "the offer expired at 2026-11-20T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			spec, one := chooseSpec, candidate("p", 0.5)
			spec.Shape = spec.Shape.DeepCopy()
			if c.spec != nil {
				c.spec(&spec)
			}
			if c.change != nil {
				c.change(&one)
			}
			d := choice.Choose(spec, []choice.Candidate{one}, c.refused, choice.Rank{}, chooseAt)
			require.Equal(t, []choice.Assessment{{
				Provider: "p", Offer: "offer-p", Epoch: "e1", Price: 0.5, Fits: c.filter == "", Filter: c.filter, Reason: c.reason,
			}}, d.Assessments)
			require.Equal(t, 1, d.Considered)
			if c.filter == "" {
				require.Equal(t, "p", d.Chosen)
				require.Empty(t, d.Counts)
				return
			}
			require.Empty(t, d.Chosen)
			require.Equal(t, map[string]int{string(c.filter): 1}, d.Counts)
		})
	}
}

// An offer in another currency is left out regardless of its price, because prices in two currencies do not compare. A
// price of zero has no currency.
func TestOfferInAnotherCurrencyIsLeftOut(t *testing.T) {
	euros := func(c *choice.Candidate) { c.Offer.Currency = "EUR" }
	free := func(c *choice.Candidate) { c.Offer.Currency, c.Offer.Price = "EUR", 0 }
	d := choice.Choose(chooseSpec, []choice.Candidate{candidate("euros", 0.1, euros), candidate("dollars", 0.5)}, nil,
		choice.Rank{}, chooseAt)
	require.Equal(t, "dollars", d.Chosen)
	require.Equal(t, choice.Assessment{Provider: "euros", Offer: "offer-euros", Epoch: "e1", Filter: choice.FilterCurrency,
		Reason: "its price is in EUR, and the node groups' currency is USD"}, d.Assessments[1])
	require.Empty(t, choice.Matching(chooseSpec, []choice.Candidate{candidate("euros", 0.1, euros)}, chooseAt))
	require.Empty(t, choice.Room(chooseSpec, []choice.Candidate{candidate("euros", 0.1, euros)}, chooseAt))
	require.Equal(t, "free", choice.Choose(chooseSpec, []choice.Candidate{candidate("free", 0.1, free)}, nil,
		choice.Rank{}, chooseAt).Chosen)
}

func TestChooseTakesTheCheapestThatFits(t *testing.T) {
	full := func(c *choice.Candidate) { c.Free = corev1.ResourceList{} }
	candidates := []choice.Candidate{
		candidate("dear", 3), candidate("b", 1), candidate("a", 0.9), candidate("full", 0, full), candidate("bad", 0.5),
	}
	want := choice.Choose(chooseSpec, candidates, []string{"bad"}, choice.Rank{}, chooseAt)
	require.Equal(t, "a", want.Chosen)
	var order []string
	for _, v := range want.Assessments {
		order = append(order, v.Provider)
	}
	require.Equal(t, []string{"a", "b", "dear", "full", "bad"}, order)
	require.Equal(t, map[string]int{"fit": 1, "refused": 1}, want.Counts)
	for range 50 {
		rand.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
		require.Equal(t, want, choice.Choose(chooseSpec, candidates, []string{"bad"}, choice.Rank{}, chooseAt))
	}
}

func TestChooseWithoutOffers(t *testing.T) {
	d := choice.Choose(chooseSpec, nil, nil, choice.Rank{}, chooseAt)
	require.Empty(t, d.Chosen)
	require.Empty(t, d.Assessments)
	require.Zero(t, d.Considered)
}

func TestDecisionsStaySmall(t *testing.T) {
	var candidates []choice.Candidate
	var refused []string
	for i := range 500 {
		id := fmt.Sprintf("p%03d", i)
		candidates = append(candidates, candidate(id, float64(500-i)))
		if i%2 == 0 {
			refused = append(refused, id)
		}
	}
	d := choice.Choose(chooseSpec, candidates, refused, choice.Rank{}, chooseAt)
	require.Equal(t, "p499", d.Chosen)
	require.Len(t, d.Assessments, choice.MaxCandidates)
	require.Equal(t, map[string]int{"refused": 250}, d.Counts)
	require.Equal(t, 500, d.Considered)

	refused = nil
	for i := range candidates { // all are refused and have the longest names
		refused = append(refused, candidates[i].Offer.Provider)
		candidates[i].Offer.Name = strings.Repeat("<", 1000)
	}
	d = choice.Choose(chooseSpec, candidates, refused, choice.Rank{}, chooseAt)
	require.Empty(t, d.Chosen)
	require.NotEmpty(t, d.Assessments)
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	require.LessOrEqual(t, len(raw), choice.MaxDecision)
	one, err := json.Marshal(d.Assessments[0])
	require.NoError(t, err)
	require.Greater(t, len(raw)+len(one)+1, choice.MaxDecision, "no more is left out than must be")

	for i := range candidates[:2] {
		candidates[i].Offer.Name = strings.Repeat("x", choice.MaxDecision)
	}
	d = choice.Choose(chooseSpec, candidates[:2], nil, choice.Rank{}, chooseAt)
	require.Equal(t, "p001", d.Chosen)
	require.Len(t, d.Assessments, 1, "the chosen one stays")
}

// The capacity of a candidate is the capacity of its offer minus the capacity of the holds. The holds are also
// subtracted from a newer offer. A resource that the offer does not name has no capacity.
func TestCandidateIsTheOfferWithoutItsHolds(t *testing.T) {
	for _, row := range fleet.PeeringMachine {
		warm := row.Phase == fleet.Established || row.Phase == fleet.Lingering
		require.Equal(t, warm, choice.CandidateOf(fleet.Offer{}, fleet.ProviderSnapshot{Phase: row.Phase}).Warm, row.Phase)
	}
	newer := fleet.Offer{Provider: "p", Lendable: amounts("cpu", "10", "memory", "8Gi")}
	state := fleet.ProviderSnapshot{Holds: []string{"lca-a-t0-1-1", "lca-a-t0-2-1"},
		Refusing: &fleet.ProviderRefusal{Reason: "its words"}}
	require.Equal(t, choice.Candidate{Offer: newer, Nodes: 2, Refusing: "its words"}, choice.CandidateOf(newer, state))
	state.Offer, state.Refusing = &fleet.Offer{Lendable: amounts("cpu", "6", "nvidia.com/gpu", "2")}, nil
	state.Free = amounts("cpu", "1500m", "nvidia.com/gpu", "1")
	c := choice.CandidateOf(newer, state)
	require.Empty(t, c.Refusing)
	require.Len(t, c.Free, 2)
	require.Equal(t, "5500m", c.Free.Cpu().String())
	require.Equal(t, "8Gi", c.Free.Memory().String())
	require.Equal(t, "10", newer.Lendable.Cpu().String(), "the offer itself is as it was")
}

// The number of nodes that fit depends on the scarcest resource, or on the offered number of nodes. It is at most
// 1,000.
func TestRoomFollowsTheScarcestResource(t *testing.T) {
	for name, c := range map[string]struct {
		shape  corev1.ResourceList
		change func(*choice.Candidate)
		want   int
	}{
		"by cpu":    {amounts("cpu", "2", "memory", "1Gi"), nil, 4},
		"by memory": {amounts("cpu", "1", "memory", "5Gi"), nil, 3},
		"by nodes":  {amounts("cpu", "1"), func(c *choice.Candidate) { c.Offer.MaxNodes, c.Nodes = 5, 2 }, 3},
		"by what is free": {amounts("cpu", "2"),
			func(c *choice.Candidate) { c.Free = amounts("cpu", "5", "memory", "1Gi") }, 2},
		"none wanted": {amounts("cpu", "2", "nvidia.com/gpu", "0"),
			func(c *choice.Candidate) { c.Offer.Lendable["nvidia.com/gpu"] = resource.MustParse("1") }, 4},
		"not limited": {amounts("cpu", "2", "ephemeral-storage", "1Ti"), nil, 4},
		"very many":   {amounts("cpu", "1m"), nil, 1000},
		"in thirds": {amounts("cpu", "100m"),
			func(c *choice.Candidate) { c.Offer.Lendable = amounts("cpu", "300m") }, 3},
	} {
		spec, one := chooseSpec, candidate("p", 1)
		spec.Shape = c.shape
		if c.change != nil {
			c.change(&one)
		}
		require.Equal(t, map[string]int{"p": c.want}, choice.Room(spec, []choice.Candidate{one}, chooseAt), name)
	}
}

// Cheapest returns the lowest price of the offers that fit and have a price. It returns 0 if no such offer exists.
func TestCheapestFittingOfferIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		prices []float64 // negative: the offer does not fit
		want   money.Money
	}{
		"none": {nil, 0}, "without a price": {[]float64{0}, 0}, "that does not fit": {[]float64{-1}, 0},
		"the first": {[]float64{1, 2}, money.Of(1)}, "the last": {[]float64{2, -1, 0, 1}, money.Of(1)},
		"the next without": {[]float64{1, 0}, money.Of(1)},
		"a millionth":      {[]float64{1, 0.000001, 2}, 1},
	} {
		var verdicts []choice.Assessment
		for _, price := range c.prices {
			verdicts = append(verdicts, choice.Assessment{Price: math.Abs(price), Fits: price >= 0})
		}
		require.Equal(t, c.want, choice.Cheapest(verdicts), name)
	}
}

// Matching returns the offers that fit when their current use is ignored, the cheapest first. It returns no offer
// that is smaller than a node. Dearest also includes the offers that are smaller than a node.
func TestMatchingIgnoresTheCurrentUse(t *testing.T) {
	full := func(c *choice.Candidate) { c.Free = corev1.ResourceList{} }
	taken := func(c *choice.Candidate) { c.Offer.MaxNodes, c.Nodes = 1, 1 }
	refuses := func(c *choice.Candidate) { c.Refusing = "no" }
	expired := func(c *choice.Candidate) { c.Offer.Expires = &chooseAt }
	small := func(c *choice.Candidate) { c.Offer.Lendable = amounts("cpu", "1", "memory", "64Gi", "pods", "500") }
	lacks := func(c *choice.Candidate) { c.Offer.Lendable = amounts("memory", "64Gi", "pods", "500") }
	candidates := []choice.Candidate{candidate("fits", 4), candidate("full", 2, full), candidate("taken", 1, taken),
		candidate("refuses", 9, refuses), candidate("expired", 9, expired), candidate("small", 5, small),
		candidate("lacks", 6, lacks), candidate("cheap", 3)}
	var got []string
	for _, o := range choice.Matching(chooseSpec, candidates, chooseAt) {
		got = append(got, o.Provider)
	}
	require.Equal(t, []string{"taken", "full", "cheap", "fits"}, got)
	require.Equal(t, 6.0, choice.Dearest(chooseSpec, candidates, chooseAt))
	require.Zero(t, choice.Dearest(chooseSpec, nil, chooseAt))
}

func TestShortlistKeepsTheBestInOrder(t *testing.T) {
	var candidates []choice.Candidate
	for i := range 30 {
		candidates = append(candidates, candidate(fmt.Sprintf("p%02d", i), float64(30-i), func(c *choice.Candidate) {
			if i >= 15 {
				c.Offer.Labels = nil
			}
		}))
	}
	short, counts := choice.Shortlist(chooseSpec, candidates, nil, choice.Rank{}, chooseAt)
	require.Len(t, short, choice.MaxCandidates)
	require.Equal(t, "p14", short[0].Offer.Provider)
	require.Equal(t, "p00", short[14].Offer.Provider)
	require.Equal(t, "p29", short[15].Offer.Provider, "places left show why others do not fit")
	require.Equal(t, map[string]int{"selector": 15}, counts)
	require.Equal(t, choice.Choose(chooseSpec, candidates, nil, choice.Rank{}, chooseAt).Chosen,
		choice.Keep(chooseSpec, short, nil, chooseAt).Chosen)
}

func TestDecisionWireFormat(t *testing.T) {
	d := choice.Choose(chooseSpec, []choice.Candidate{candidate("a", 1),
		candidate("b", 0, func(c *choice.Candidate) { c.Offer.Labels = nil })}, nil, choice.Rank{}, chooseAt)
	raw, err := json.Marshal(d)
	require.NoError(t, err)
	require.JSONEq(t, `{"chosen":"a","considered":2,"counts":{"selector":1},"assessments":[
		{"provider":"a","offer":"offer-a","epoch":"e1","fits":true,"reason":"fits at price 1 USD","price":1},
		{"provider":"b","offer":"offer-b","epoch":"e1","fits":false,"filter":"selector","reason":"labels {} do not match the group's selector country=it","price":0}]}`, string(raw))
}

// Candidates pass from Discover to Select through the history as JSON. An offer without free capacity must not become
// an unused offer when it is decoded.
func TestCandidateSurvivesJSON(t *testing.T) {
	for _, free := range []corev1.ResourceList{nil, {}, amounts("cpu", "1")} {
		c := candidate("a", 1, func(c *choice.Candidate) { c.Free = free })
		raw, err := json.Marshal(c)
		require.NoError(t, err)
		var back choice.Candidate
		require.NoError(t, json.Unmarshal(raw, &back))
		require.Equal(t, free == nil, back.Free == nil)
		require.Equal(t, choice.Choose(chooseSpec, []choice.Candidate{c}, nil, choice.Rank{}, chooseAt).Chosen,
			choice.Choose(chooseSpec, []choice.Candidate{back}, nil, choice.Rank{}, chooseAt).Chosen)
	}
}

// The instances of a burst spread over the offers before the first hold is booked. Each instance takes the best offer
// on which the earlier instances leave enough capacity.
func TestChooseSpreadsABurst(t *testing.T) {
	four := func(c *choice.Candidate) { c.Free = amounts("cpu", "4", "memory", "16Gi", "pods", "110") }
	candidates := []choice.Candidate{candidate("a", 1, four), candidate("b", 1, four), candidate("dear", 2)}
	taken := map[string]int{}
	for ahead := range 6 {
		taken[choice.Choose(chooseSpec, candidates, nil, choice.Rank{Ahead: ahead, Name: "n"},
			chooseAt).Chosen]++
	}
	require.Equal(t, map[string]int{"a": 2, "b": 2, "dear": 2}, taken)
}

// Equal offers alternate. Each offer gets one node before any offer gets a second node, and no offer gets more nodes
// than fit. Offers with the next price follow. The order of equal offers depends on the name of the group, and not on
// the order of the input.
func TestEqualOffersAlternate(t *testing.T) {
	candidates, places := []choice.Candidate{candidate("dear", 2)}, map[string]int{}
	for n, id := range []string{"a", "b", "c", "d"} {
		candidates = append(candidates, candidate(id, 1, func(c *choice.Candidate) {
			c.Offer.MaxNodes, c.Free = n+1, amounts("cpu", "8", "memory", "16Gi", "pods", "200")
		}))
		places[id] = n + 1
	}
	deal := func(name string) (dealt []string) {
		for ahead := range 11 {
			rand.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
			dealt = append(dealt, choice.Choose(chooseSpec, candidates, nil, choice.Rank{Ahead: ahead, Name: name},
				chooseAt).Chosen)
		}
		return dealt
	}
	edge := deal("edge")
	require.ElementsMatch(t, []string{"a", "b", "c", "d"}, edge[:4])
	taken := map[string]int{}
	for _, id := range edge[:10] {
		taken[id]++
	}
	require.Equal(t, places, taken)
	require.Equal(t, "dear", edge[10])
	require.Equal(t, edge, deal("edge"))
	require.NotEqual(t, edge, deal("core"))
}

// A shape fits no offer now, but would fit without the holds on an offer. The result is then "full", so a retry may
// help. For a shape that never fits, the result is not "full".
func TestFullOfferMayBeRetried(t *testing.T) {
	used := candidate("p", 1, func(c *choice.Candidate) { c.Free = corev1.ResourceList{} })
	require.True(t, choice.Choose(chooseSpec, []choice.Candidate{used}, nil, choice.Rank{}, chooseAt).Full)
	require.False(t, choice.Choose(chooseSpec, []choice.Candidate{used}, []string{"p"}, choice.Rank{}, chooseAt).Full)
	small := candidate("p", 1, func(c *choice.Candidate) { c.Offer.Lendable = amounts("cpu", "1") })
	require.False(t, choice.Choose(chooseSpec, []choice.Candidate{small}, nil, choice.Rank{}, chooseAt).Full)
}

// Place takes the cheapest capacity first, one node of the group's shape after another. It takes nothing from an
// offer that the group may not use.
func TestPlaceTakesTheCheapestPlacesFirst(t *testing.T) {
	candidates := []choice.Candidate{candidate("dear", 2), candidate("cheap", 1),
		candidate("french", 0, func(c *choice.Candidate) { c.Offer.Labels = map[string]string{"country": "fr"} })}
	spec := chooseSpec
	spec.Shape = amounts("cpu", "4", "memory", "4Gi", "pods", "50") // two nodes fit on each offer
	left := func() map[string]int { return choice.Room(spec, candidates, chooseAt) }
	choice.Place(spec, 0, candidates, chooseAt)
	require.Equal(t, map[string]int{"cheap": 2, "dear": 2}, left())
	choice.Place(spec, -1, candidates, chooseAt)
	require.Zero(t, candidates[1].Nodes)
	choice.Place(spec, 1, candidates, chooseAt)
	require.Equal(t, map[string]int{"cheap": 1, "dear": 2}, left())
	choice.Place(spec, 2, candidates, chooseAt)
	require.Equal(t, map[string]int{"dear": 1}, left())
	require.Equal(t, []int{1, 2, 0}, []int{candidates[0].Nodes, candidates[1].Nodes, candidates[2].Nodes})
	choice.Place(spec, 5, candidates, chooseAt)
	require.Empty(t, left())
	require.Equal(t, 2, candidates[0].Nodes, "no more than there is")
	require.Zero(t, candidates[2].Nodes, "and none where none may be")
}

// When the removal of a provider's last peering hangs, the provider is chosen last, also with a Selection. It is chosen
// when no other offer fits. A refused provider stays excluded.
func TestProviderWithAHangingRemovalIsChosenLast(t *testing.T) {
	for name, selection := range map[string]*fleet.Selection{"by price": nil, "by score": {Price: 1, Warm: 1}} {
		t.Run(name, func(t *testing.T) {
			spec := chooseSpec
			spec.Selection = selection
			choose := func(removing time.Time, refused ...string) string {
				cheap := candidate("cheap", 0.1, func(c *choice.Candidate) { c.Removing = removing })
				both := []choice.Candidate{cheap, candidate("dear", 0.9)}
				return choice.Choose(spec, both, refused, choice.Rank{}, chooseAt).Chosen
			}
			require.Equal(t, "cheap", choose(time.Time{}))
			require.Equal(t, "cheap", choose(chooseAt.Add(-time.Second)))
			hangs := chooseAt.Add(-time.Minute)
			require.Equal(t, "dear", choose(hangs))
			require.Equal(t, "cheap", choose(hangs, "dear"))
			require.Empty(t, choose(hangs, "dear", "cheap"))
		})
	}
}
