package grpcserver

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// fakeMarket holds the providers' offers. A server reads it at any time, so tests change it only by nodes and set.
type fakeMarket struct {
	mu sync.Mutex
	market.Market
	unknown bool
}

func (m *fakeMarket) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

// nodes adds an offer with capacity for n nodes of the test's shape.
func (m *fakeMarket) nodes(provider string, n int, price float64) {
	room := times(int64(n), spec("any", 0, 1).Shape)
	m.set(func() {
		m.Offers = append(m.Offers, market.Offer{Name: provider, Provider: provider, Lendable: room, Free: room, Price: price,
			Labels: map[string]string{"provider": provider}})
	})
}

func (m *fakeMarket) current() (now market.Market, known bool) {
	m.set(func() { now, known = market.Market{Offers: slices.Clone(m.Offers)}, !m.unknown })
	return now, known
}

// times returns the resources of n nodes of a shape.
func times(n int64, shape corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, quantity := range shape {
		quantity.Mul(n)
		out[name] = quantity
	}
	return out
}

func onMarket(t *testing.T, f *fakeGroups, m *fakeMarket, specs ...fleet.GroupSpec) client {
	t.Helper()
	return newClient(t, marketed(t, f, m, specs...))
}

// marketed returns a server on a market. The server has read its groups.
func marketed(t *testing.T, f *fakeGroups, m *fakeMarket, specs ...fleet.GroupSpec) *Server {
	t.Helper()
	s, err := New(Options{Groups: f, Specs: specs, Logger: quiet, Market: m.current})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	return s
}

func (c client) max(group string) int {
	c.t.Helper()
	return int(c.groups()[group].GetMaxSize())
}

// The max that CA sees is bounded by the available capacity, because CA treats a refused request as a failure and
// backs off.
func TestMaxIsTheOfferedCapacity(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 2, 1)
	m.nodes("turin", 1, 2)
	c := onMarket(t, f, m, spec("cpu", 4, 10))
	require.Equal(t, 3, c.max("cpu"))
	require.EqualValues(t, 3, c.groups()["cpu"].GetMinSize(), "min is never above max")

	require.NoError(t, c.increase("cpu", 2))
	require.Equal(t, 3, c.max("cpu"), "within a loop it stays")
	require.NoError(t, c.refresh())
	require.Equal(t, 3, c.max("cpu"), "two that are booked have no place yet, and will take one each")
	require.NoError(t, c.increase("cpu", 4), "refused is only what passes the config's max")
	require.Equal(t, 6, c.max("cpu"), "never less than the target size")

	m.nodes("rome", 100, 1)
	require.NoError(t, c.refresh())
	require.Equal(t, 10, c.max("cpu"))
	m.set(func() { m.unknown = true })
	require.NoError(t, c.refresh())
	require.Equal(t, 7, c.max("cpu"), "a market that is not written must not stop CA")
	m.set(func() { m.unknown, m.Offers = false, nil })
	require.NoError(t, c.refresh())
	require.Equal(t, 6, c.max("cpu"))
}

// An offer in another currency changes neither max nor prices. A metric counts such offers, so that operators see the
// cause.
func TestOffersInAnotherCurrencyAddNoRoom(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 2, 1)
	m.nodes("turin", 3, 0.1)
	m.set(func() { m.Offers[0].Currency, m.Offers[1].Currency = "USD", "EUR" })
	dollars := spec("cpu", 0, 10)
	s, err := New(Options{Groups: f, Specs: []fleet.GroupSpec{dollars}, Logger: quiet, Market: m.current})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	c := newClient(t, s)
	require.Equal(t, 2, c.max("cpu"))
	has(t, scrape(t, NewMetrics(s)), "offers_in_another_currency 1")
	m.set(func() { m.Offers[1].Currency = "" })
	require.NoError(t, c.refresh())
	require.Equal(t, 5, c.max("cpu"))
	has(t, scrape(t, NewMetrics(s)), "offers_in_another_currency 0")
}

// Several groups can use the same free capacity. While no instance waits, the max of each group includes the whole
// free capacity. When instances of a group wait, the max of another group includes only a part of the rest.
func TestGroupsShareFreeRoom(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 7, 1)
	elsewhere := spec("elsewhere", 0, 10)
	elsewhere.Provider = "turin"
	c := onMarket(t, f, m, spec("cpu", 0, 10), spec("gpu", 0, 10), elsewhere)
	require.Equal(t, []int{7, 7, 0}, []int{c.max("cpu"), c.max("gpu"), c.max("elsewhere")})
	require.NoError(t, c.increase("gpu", 2))
	require.NoError(t, c.refresh())
	require.Equal(t, []int{3, 7, 0}, []int{c.max("cpu"), c.max("gpu"), c.max("elsewhere")},
		"5 are left, and the two groups get equal parts, rounded up")
}

// CA splits a scale-out between groups with the same balancing label. The max values of these groups together do not
// exceed the free capacity.
func TestBalancedGroupsSeeNoMoreRoomThanExists(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 5, 1)
	c := onMarket(t, f, m, balancing("a", "web"), balancing("b", "web"), balancing("c", "other"), spec("d", 0, 10))
	require.Equal(t, []int{3, 3, 5, 5}, []int{c.max("a"), c.max("b"), c.max("c"), c.max("d")})
}

// The max of each group counts the same free capacity in nodes of the group's own shape: four small nodes need as
// much as one large node.
func TestRoomIsCountedInTheGroupsShape(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 9, 1) // nodes of the small shape
	large := spec("large", 0, 10)
	large.Shape = times(4, large.Shape)
	c := onMarket(t, f, m, spec("small", 0, 10), large)
	require.Equal(t, []int{9, 2}, []int{c.max("small"), c.max("large")})
	require.NoError(t, c.increase("large", 1))
	require.NoError(t, c.refresh())
	require.Equal(t, []int{3, 2}, []int{c.max("small"), c.max("large")}, "5 small places are left, or 1 large one")

	f.change("large", func(l *fleet.Ledger) { // the market does not show the instance yet
		l.Entries[0].Phase, l.Entries[0].Offer = fleet.Ready, &fleet.Offer{Name: "milan", Provider: "milan"}
	})
	require.NoError(t, c.refresh())
	require.Equal(t, []int{5, 2}, []int{c.max("small"), c.max("large")})
	m.set(func() { m.Offers[0].Nodes, m.Offers[0].Free = 1, times(5, spec("small", 0, 1).Shape) })
	require.NoError(t, c.refresh())
	require.Equal(t, []int{5, 2}, []int{c.max("small"), c.max("large")}, "nothing is taken twice")

	require.NoError(t, c.increase("small", 2))
	require.NoError(t, c.refresh())
	require.Equal(t, []int{5, 1}, []int{c.max("small"), c.max("large")}, "3 small places are left, and no large one")
}

// Waiting instances take the cheapest offers. The groups share the remaining capacity.
func TestWaitingInstancesTakeTheCheapestRoom(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 2, 1)
	m.nodes("turin", 3, 2)
	dear := spec("dear", 0, 10)
	dear.Provider = "turin"
	c := onMarket(t, f, m, spec("any", 0, 10), dear)
	require.Equal(t, []int{5, 3}, []int{c.max("any"), c.max("dear")})
	require.NoError(t, c.increase("any", 2))
	require.NoError(t, c.refresh())
	require.Equal(t, []int{5, 2}, []int{c.max("any"), c.max("dear")}, "they compete for the 3 of turin")
}

// New instances of the group "small" may choose an offer before the waiting instances of the group "waits". The max
// of "small" therefore excludes the capacity that the waiting instances need: the capacity on their only offer, or
// enough capacity for their larger nodes.
func TestRoomForWaitingInstancesIsNotTaken(t *testing.T) {
	only, large := spec("waits", 0, 10), spec("waits", 0, 10)
	only.Provider = "milan"
	large.Shape = times(3, large.Shape)
	for name, waits := range map[string]fleet.GroupSpec{"for one offer": only, "for a large node": large} {
		t.Run(name, func(t *testing.T) {
			f, m := newFake(), &fakeMarket{}
			m.nodes("milan", 3, 1) // the small nodes take the room on milan first
			m.nodes("turin", 2, 2)
			c := onMarket(t, f, m, waits, spec("small", 0, 10))
			require.Equal(t, 5, c.max("small"))
			require.NoError(t, c.increase("waits", int32(c.max("waits"))))
			require.NoError(t, c.refresh())
			require.Zero(t, c.max("small"))
			f.change("waits", func(l *fleet.Ledger) {
				for _, e := range l.Entries {
					e.Phase, e.Offer = fleet.Ready, &fleet.Offer{Name: "milan", Provider: "milan"}
				}
			})
			require.NoError(t, c.refresh())
			require.Equal(t, 2, c.max("small"))
		})
	}
}

func balancing(id, value string) fleet.GroupSpec {
	s := spec(id, 0, 10)
	s.Labels = map[string]string{fleet.LabelBalance: value}
	return s
}

// The market shows a hold (an instance's use of a provider) some seconds after the group has received the hold. In
// the meantime the server already counts the hold.
func TestHoldsCountBeforeTheMarketShowsThem(t *testing.T) {
	g := newGroup(&terms{spec: spec("cpu", 0, 10)})
	instances := []fleet.InstanceView{
		{Name: "a", Phase: fleet.Ready, Provider: "milan", Counts: true}, {Name: "b", Phase: fleet.Peering, Provider: "milan",
			Counts: true}, {Name: "c", Phase: fleet.Failed, Counts: true},
	}
	g.picture.Store(newPicture(fleet.Snapshot{Group: "cpu", Target: 3, Instances: instances}))
	m := &fakeMarket{}
	m.nodes("milan", 5, 1)
	seen := &m.Offers[0]
	seen.Nodes, seen.Free = 1, times(4, spec("any", 0, 1).Shape)
	free := subtract(m.Market, groupStates([]*group{g}))[0].Free[corev1.ResourceCPU]
	require.Zero(t, free.Cmp(resource.MustParse("12")), "one hold is seen, one is not: %s", free.String())
}

// A group that the server has not read yet does not reduce the max of other groups.
func TestUnreadGroupTakesNoRoom(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 2, 1)
	f.failing["gpu"] = fleet.ErrUnavailable
	c := onMarket(t, f, m, spec("cpu", 0, 10), spec("gpu", 0, 10))
	require.NotContains(t, c.groups(), "gpu")
	require.Equal(t, 2, c.max("cpu"))
}

// CA splits a scale-out only between groups that can grow. The server therefore divides free capacity only among
// groups that can grow.
func TestGroupsThatCannotGrowShareNothing(t *testing.T) {
	g := newGroup(&terms{spec: balancing("g", "a")})
	for name, c := range map[string]struct {
		change func(*group)
		want   bool
	}{
		"can grow":      {func(*group) {}, true},
		"another value": {func(o *group) { o.terms.Store(&terms{spec: balancing("o", "b")}) }, false},
		"no value":      {func(o *group) { o.terms.Store(&terms{spec: spec("o", 0, 10)}) }, false},
		"unread":        {func(o *group) { o.picture.Store(nil) }, false},
		"retired":       {func(o *group) { o.terms.Store(&terms{spec: balancing("o", "a"), retired: true}) }, false},
		"unavailable":   {func(o *group) { o.unusable.Store(&problem{errLostHistory}) }, false},
		"at its max":    {func(o *group) { o.picture.Store(newPicture(fleet.Snapshot{Target: 10})) }, false},
	} {
		other := newGroup(&terms{spec: balancing("o", "a")})
		other.picture.Store(newPicture(fleet.Snapshot{Target: 9}))
		c.change(other)
		require.Equal(t, c.want, balance(g, other), name)
	}
}

// The free part of an offer is its published free capacity, but never more than its capacity minus the instances of our
// groups. When an offer has no published free capacity, its capacity minus these instances counts.
func TestFreePartOfAnOffer(t *testing.T) {
	shape := spec("cpu", 0, 10).Shape
	g := newGroup(&terms{spec: spec("cpu", 0, 10)})
	g.picture.Store(newPicture(fleet.Snapshot{Group: "cpu", Instances: []fleet.InstanceView{
		{Name: "a", Phase: fleet.Ready, Provider: "milan", Counts: true},
		{Name: "b", Phase: fleet.Ready, Provider: "milan", Counts: true}}}))
	for name, c := range map[string]struct {
		nodes, wantNodes int
		free, want       corev1.ResourceList
	}{
		"ours are not shown":        {nodes: 0, free: times(5, shape), wantNodes: 2, want: times(3, shape)},
		"ours are shown":            {nodes: 2, free: times(3, shape), wantNodes: 2, want: times(3, shape)},
		"others have nodes too":     {nodes: 4, free: times(1, shape), wantNodes: 4, want: times(1, shape)},
		"it shows nothing as free":  {nodes: 0, wantNodes: 2, want: times(3, shape)},
		"it shows only one of them": {nodes: 0, free: only(5, shape, "cpu"), wantNodes: 2, want: only(3, shape, "cpu")},
	} {
		t.Run(name, func(t *testing.T) {
			m := &fakeMarket{}
			m.nodes("milan", 5, 1)
			m.Offers[0].Nodes, m.Offers[0].Free = c.nodes, c.free
			left := subtract(m.Market, groupStates([]*group{g}))[0]
			require.Equal(t, c.wantNodes, left.Nodes)
			require.Len(t, left.Free, len(c.want))
			for name, want := range c.want {
				got := left.Free[name]
				require.Zero(t, got.Cmp(want), "%s: %s", name, got.String())
			}
		})
	}
}

// The function `only` returns a shape with one resource: n times the amount of this resource in another shape.
func only(n int64, shape corev1.ResourceList, name corev1.ResourceName) corev1.ResourceList {
	return corev1.ResourceList{name: times(n, shape)[name]}
}

// Groups without a common offer do not reduce each other's max.
func TestGroupsWithoutACommonOfferShareNoRoom(t *testing.T) {
	f, m := newFake(), &fakeMarket{}
	m.nodes("milan", 6, 1)
	m.nodes("turin", 4, 1)
	cpu, gpu := spec("cpu", 0, 10), spec("gpu", 0, 10)
	cpu.Provider, gpu.Provider = "milan", "turin"
	c := onMarket(t, f, m, cpu, gpu)
	require.NoError(t, c.increase("gpu", 1))
	require.NoError(t, c.refresh())
	require.Equal(t, []int{6, 4}, []int{c.max("cpu"), c.max("gpu")})
}
