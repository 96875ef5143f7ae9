package market_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// world holds a catalog, the providers' entities, and a store in memory.
type world struct {
	mu     sync.Mutex // guards the fields below
	offers []fleet.Offer
	states map[string]fleet.ProviderSnapshot
	groups []fleet.Snapshot
	err    error

	market market.Market
	writes int
	none   bool

	far time.Duration // duration of a read of a provider

	active     map[string]bool // the providers on which we have holds or peerings
	unobserved bool            // no round has read a provider yet
	read       []string
	readAt     map[string]time.Time // the time of the last read of each provider
	starting   map[string]bool      // the providers whose workflows publish no holds yet
}

// written returns how often the market was written.
func (w *world) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// offer returns the first offer on the market.
func (w *world) offer() market.Offer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.market.Offers[0]
}

// set changes the world under its lock.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) Offers(context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]fleet.Offer, len(w.offers))
	for i, o := range w.offers {
		out[i] = discovery.CopyOffer(o)
	}
	return out, nil, w.err
}

func (w *world) Provider(ctx context.Context, id string) (fleet.ProviderSnapshot, error) {
	if w.far > 0 {
		select {
		case <-time.After(w.far):
		case <-ctx.Done():
			return fleet.ProviderSnapshot{}, ctx.Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read = append(w.read, id)
	if w.starting[id] {
		return fleet.ProviderSnapshot{}, fleet.Refuse(fleet.RefusedNotInitialised, "it recovers")
	}
	w.readAt[id] = time.Now()
	if s, ok := w.states[id]; ok {
		return s, nil
	}
	return fleet.ProviderSnapshot{}, fleet.ErrNotRunning
}

// Remembered returns a provider's present state, and the time since Provider last returned it, which is centuries if
// Provider never has.
func (w *world) Remembered(id string) (fleet.ProviderSnapshot, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.states[id], time.Since(w.readAt[id])
}

func (w *world) Active(id string) (active, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.active[id], !w.unobserved
}

func (w *world) Specs() (specs []fleet.GroupSpec) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.groups {
		specs = append(specs, *g.Spec)
	}
	return specs
}

func (w *world) Load(context.Context) (market.Market, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.none {
		return market.Market{}, market.ErrNone
	}
	return w.market, nil
}

func (w *world) Save(_ context.Context, m market.Market) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.market = m
	w.writes++
	return nil
}

func (w *world) publisher() market.Publisher {
	return market.Publisher{Catalog: w, Entities: w, Observed: w, Store: w, Logger: slog.New(slog.DiscardHandler)}
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
}

func newWorld() *world {
	return &world{
		offers: []fleet.Offer{{Name: "milan", Provider: "milan", Lendable: list("100", "200Gi"), Price: 2,
			Credentials: fleet.Credentials{KubeconfigFile: "/milan"}}},
		states: map[string]fleet.ProviderSnapshot{}, readAt: map[string]time.Time{},
		groups: []fleet.Snapshot{{Group: "std", Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "std",
			Shape: list("4", "8Gi")}}}},
	}
}

// hold takes CPU and memory of the provider milan.
func (w *world) hold(cpu, memory string, keys ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	free := w.offers[0].Lendable.DeepCopy()
	for name, taken := range list(cpu, memory) {
		have := free[name]
		have.Sub(taken)
		free[name] = have
	}
	offer := discovery.CopyOffer(w.offers[0])
	w.states["milan"] = fleet.ProviderSnapshot{ID: "milan", Offer: &offer, Free: free, Holds: keys}
}

// run runs a publisher for a while in a synctest bubble.
func (w *world) run(t *testing.T, during func(pass func(time.Duration))) {
	t.Helper()
	w.runWith(t, w.publisher(), during)
}

func (w *world) runWith(t *testing.T, p market.Publisher, during func(pass func(time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go p.Run(ctx)
		synctest.Wait()
		during(func(d time.Duration) {
			time.Sleep(d) // time in the bubble
			synctest.Wait()
		})
		cancel()
		synctest.Wait()
	})
}

func TestChangesArePublished(t *testing.T) {
	w := newWorld()
	w.hold("4", "8Gi", "std-1-1")
	w.run(t, func(pass func(time.Duration)) {
		require.Equal(t, 1, w.written())
		o := w.offer()
		require.Equal(t, []string{"96", "192Gi"}, []string{o.Free.Cpu().String(), o.Free.Memory().String()})
		require.Equal(t, 1, o.Nodes)
		pass(30 * time.Second)
		require.Equal(t, 1, w.written(), "nothing has changed")

		w.hold("8", "16Gi", "std-1-1", "std-2-1")
		pass(4 * time.Second)
		require.Equal(t, 2, w.written())
		w.set(func() { w.offers[0].Price = 3 })
		pass(4 * time.Second)
		require.Equal(t, 3, w.written())
		w.set(func() { w.offers[0].Labels = map[string]string{"region": "north"} })
		pass(4 * time.Second)
		require.Equal(t, 4, w.written())
		w.set(func() { w.offers[0].Prices = map[corev1.ResourceName]float64{"cpu": 0.03} })
		pass(4 * time.Second)
		require.Equal(t, 5, w.written())
		require.Equal(t, w.offers[0].Prices, w.offer().Candidate().Offer.Prices, "as it is judged")
		w.set(func() { w.offers[0].Currency = "EUR" })
		pass(4 * time.Second)
		require.Equal(t, 6, w.written())
		require.Equal(t, "EUR", w.offer().Candidate().Offer.Currency)
		w.set(func() { w.offers[0].LatencyMilliseconds = 20 })
		pass(4 * time.Second)
		require.Equal(t, 7, w.written())
		end := time.Now().Add(time.Hour)
		w.set(func() { w.offers[0].Expires = &end })
		pass(4 * time.Second)
		require.Equal(t, 8, w.written())
		w.set(func() { same := end.In(time.FixedZone("", 3600)); w.offers[0].Expires = &same })
		pass(9 * time.Second)
		require.Equal(t, 8, w.written(), "the same time, as it is read again and again")
		w.set(func() { later := end.Add(time.Minute); w.offers[0].Expires = &later })
		pass(4 * time.Second)
		require.Equal(t, 9, w.written())
		pass(61 * time.Second)
		require.Equal(t, 10, w.written(), "once a minute, so that readers know that it is kept")
	})
}

// The worker's findings are published together with the offers. A new finding causes a write, and a flood of findings
// is cut.
func TestFindingsArePublished(t *testing.T) {
	w := newWorld()
	p := w.publisher()
	var found market.Findings
	p.Findings = func() market.Findings {
		w.mu.Lock()
		defer w.mu.Unlock()
		return found
	}
	read := func() market.Findings {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.market.Findings
	}
	w.runWith(t, p, func(pass func(time.Duration)) {
		require.Zero(t, read())
		one := market.Findings{Nodes: []market.DifferentNode{{Node: "n", Group: "g", Differs: "cpu"}}}
		w.set(func() { found = one })
		pass(4 * time.Second)
		require.Equal(t, one, read())
		require.Equal(t, 2, w.written())
		pass(30 * time.Second)
		require.Equal(t, 2, w.written(), "it is the same")

		many := market.Findings{Nodes: []market.DifferentNode{{Differs: strings.Repeat("é", 400)}}}
		for n := range 70 {
			many.Left = append(many.Left, market.Left{Provider: strconv.Itoa(n), Object: strings.Repeat("w", 400)})
		}
		w.set(func() { found = many })
		pass(4 * time.Second)
		require.Equal(t, 3, w.written())
		require.Len(t, read().Left, 50)
		require.Equal(t, 20, read().MoreLeft)
		require.Equal(t, strings.Repeat("w", 300)+"…", read().Left[9].Object)
		require.Len(t, many.Left[9].Object, 400, "the finder's own text stays whole")
		require.Equal(t, strings.Repeat("é", 300)+"…", read().Nodes[0].Differs)
		w.set(func() { found = market.Findings{} })
		pass(4 * time.Second)
		require.Zero(t, read())
	})
}

// Findings with long messages leave enough room in the document for the offers.
func TestFindingsAreBounded(t *testing.T) {
	w := newWorld()
	p := w.publisher()
	var many market.Findings
	for n := range 60 {
		long := strings.Repeat("l", 3000) + strconv.Itoa(n)
		many.Left = append(many.Left, market.Left{Provider: long, Object: long, KeptBecause: long})
		many.Pods = append(many.Pods, market.PodsWaiting{Provider: "milan", Pod: long, Why: long})
	}
	p.Findings = func() market.Findings { return many }
	w.runWith(t, p, func(func(time.Duration)) {
		published, err := w.Load(t.Context())
		require.NoError(t, err)
		raw, err := json.Marshal(published.Findings)
		require.NoError(t, err)
		require.LessOrEqual(t, len(raw), 64<<10)
		require.NotEmpty(t, published.Findings.Left)
		require.Equal(t, 60, len(published.Findings.Left)+published.Findings.MoreLeft)
		require.NotEmpty(t, published.Findings.Pods)
		require.Equal(t, 60, len(published.Findings.Pods)+published.Findings.MorePods)
	})
}

func TestFindingsOfAGroupAreSelected(t *testing.T) {
	all := market.Findings{
		Nodes: []market.DifferentNode{{Node: "a", Group: "one"}, {Node: "b", Group: "two"}},
		Left:  []market.Left{{Provider: "milan"}}, MoreNodes: 3,
		Pods: []market.PodsWaiting{{Group: "one"}, {Group: "two"}},
	}
	require.Equal(t, all, all.Of(nil))
	require.Equal(t, market.Findings{Nodes: all.Nodes[1:], Left: all.Left, Pods: all.Pods[1:]},
		all.Of(func(group, _ string) bool { return group == "two" || group == "" }))
}

// A provider that accepts no new holds counts as full, although it has an offer. The published market names the
// reason.
func TestClosedProvidersHaveNoRoom(t *testing.T) {
	for why, change := range map[string]func(*fleet.ProviderSnapshot){
		"CredentialsRefused": func(s *fleet.ProviderSnapshot) { s.Standing.Access = fleet.AccessRefused },
		"Unreachable":        func(s *fleet.ProviderSnapshot) { s.Standing.Access = fleet.AccessSilent },
		"no more":            func(s *fleet.ProviderSnapshot) { s.Refusing = &fleet.ProviderRefusal{Reason: "no more"} },
		"":                   func(s *fleet.ProviderSnapshot) { s.Standing.Access = fleet.AccessIsolated },
	} {
		w := newWorld()
		w.hold("4", "8Gi", "std-1-1")
		w.run(t, func(pass func(time.Duration)) {
			before := w.written()
			w.set(func() {
				for id, s := range w.states {
					change(&s)
					w.states[id] = s
				}
			})
			pass(4 * time.Second)
			o := w.offer()
			require.Equal(t, why, o.Closed)
			room := choice.Room(fleet.InstanceSpec{}, []choice.Candidate{o.Candidate()}, time.Now())
			require.Equal(t, why == "", len(room) == 1, why)
			require.Equal(t, why != "", w.written() > before, "%s is news", why)
		})
	}
}

// A node is created faster on an existing peering, so a new peering causes a write.
func TestPeeringsArePublished(t *testing.T) {
	w := newWorld()
	w.hold("4", "8Gi", "std-1-1")
	w.run(t, func(pass func(time.Duration)) {
		for _, phase := range []fleet.PeeringPhase{fleet.Absent, fleet.Establishing, fleet.Established, fleet.Lingering} {
			w.set(func() {
				for id, s := range w.states {
					s.Phase = phase
					w.states[id] = s
				}
			})
			pass(4 * time.Second)
			require.Equal(t, phase == fleet.Established || phase == fleet.Lingering, w.offer().Peered, phase)
		}
	})
}

// A provider that an operator has cordoned counts as full, and the cordon causes a write.
func TestCordonedProvidersHaveNoRoom(t *testing.T) {
	w := newWorld()
	w.hold("4", "8Gi", "std-1-1")
	w.run(t, func(pass func(time.Duration)) {
		room := func() int {
			return len(choice.Room(fleet.InstanceSpec{}, []choice.Candidate{w.offer().Candidate()}, time.Now()))
		}
		for _, since := range []time.Time{{}, time.Now()} {
			w.set(func() {
				for id, s := range w.states {
					s.Cordoned = since
					w.states[id] = s
				}
			})
			pass(4 * time.Second)
			require.Equal(t, since.IsZero(), room() == 1)
		}
	})
}

// The amounts that an agent measures change all the time. A small change causes a write only if fewer nodes fit than
// before. If one more node fits again, the market publishes this only with its next write.
func TestSmallChangesAreNotPublished(t *testing.T) {
	w := newWorld()
	w.run(t, func(pass func(time.Duration)) {
		for _, each := range []struct {
			cpu    string
			writes int
		}{
			{"101", 1}, {"103", 1}, {"100.5", 1}, // less than a node, and less than a tenth of the capacity
			{"99", 2}, {"100", 2}, {"99", 2}, // 24 instead of 25 nodes fit
			{"103", 3}, // a whole node more
		} {
			w.set(func() { w.offers[0].Lendable = list(each.cpu, "200Gi") })
			pass(4 * time.Second)
			require.Equal(t, each.writes, w.written(), each.cpu)
		}
		w.set(func() { w.groups = nil })
		w.set(func() { w.offers[0].Lendable = list("80", "200Gi") }) // more than a tenth of the capacity
		pass(4 * time.Second)
		require.Equal(t, 4, w.written())
	})
}

// A publication may take 10 s. This suffices even for many providers with a Temporal that is far away.
func TestManyProvidersArePublishedInTime(t *testing.T) {
	w := newWorld()
	w.far = 30 * time.Millisecond
	for n := range 500 {
		o := discovery.CopyOffer(w.offers[0])
		o.Name = fmt.Sprint("p", n)
		o.Provider = o.Name
		w.offers = append(w.offers, o)
	}
	w.hold("4", "8Gi", "std-1-1")
	w.run(t, func(pass func(time.Duration)) {
		pass(10 * time.Second)
		require.Equal(t, 1, w.written())
		require.Len(t, w.market.Offers, 501)
		free := w.offer().Free
		require.Equal(t, "96", free.Cpu().String())
	})
}

// One publication reads at most 100 of the active providers, those with the oldest reads. So it ends in time also when
// Temporal is far away, and after a few publications every provider has been read. The reads do not wait for the 150
// providers that publish nothing yet.
func TestPublicationReadsABoundedNumberOfProviders(t *testing.T) {
	w := newWorld()
	w.far, w.active, w.starting, w.offers = 250*time.Millisecond, map[string]bool{}, map[string]bool{}, nil
	for n := range 1000 {
		o := discovery.CopyOffer(newWorld().offers[0])
		o.Name = fmt.Sprint("p", n)
		o.Provider = o.Name
		w.offers, w.active[o.Provider], w.starting[o.Provider] = append(w.offers, o), true, n < 150
	}
	w.run(t, func(pass func(time.Duration)) {
		pass(2 * time.Second)
		require.Equal(t, 1, w.written())
		w.set(func() { require.Len(t, w.read, 100) })
		pass(58 * time.Second)
		read := map[string]int{}
		w.set(func() {
			for _, id := range w.read {
				read[id]++
			}
		})
		require.Len(t, read, 1000)
		for id, n := range read {
			require.LessOrEqual(t, n, 2, id)
		}
	})
}

func TestPublisherWithoutReadsWritesNothing(t *testing.T) {
	w := newWorld()
	w.run(t, func(pass func(time.Duration)) {
		w.set(func() { w.err = errors.New("no source answers") })
		pass(10 * time.Minute)
		require.Equal(t, 1, w.written())
		w.set(func() { w.err = nil })
		pass(4 * time.Second)
		require.Equal(t, 2, w.written())
	})
}

// A reader uses only its own clock. It does not use a document that the worker has not written for a long time.
func TestReaderIgnoresAnOldDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.none = true
		r := market.NewReader(w, slog.New(slog.DiscardHandler))
		_, known := r.Current()
		require.False(t, known)
		ctx, cancel := context.WithCancel(t.Context())
		go r.Run(ctx)
		synctest.Wait()
		_, known = r.Current()
		require.False(t, known)
		w.set(func() {
			w.none = false
			w.market = market.Market{At: time.Now().Add(-time.Hour), Offers: []market.Offer{{Name: "a"}}} // by a wrong clock
		})
		time.Sleep(3 * time.Second)
		m, known := r.Current()
		require.True(t, known)
		require.Len(t, m.Offers, 1)
		time.Sleep(4 * time.Minute)
		_, known = r.Current()
		require.False(t, known)
		cancel()
	})
}

// A ConfigMap has room for one MiB. When the offers need more, the most expensive offers are left out and counted.
func TestMostExpensiveOffersAreLeftOut(t *testing.T) {
	for name, c := range map[string]struct{ words, atLeast, atMost int }{
		"many":  {words: 1, atLeast: 1000, atMost: 1000},
		"large": {words: 60, atLeast: 100, atMost: 300},
	} {
		t.Run(name, func(t *testing.T) {
			const all = 1500
			w := newWorld()
			w.offers = nil
			for n := range all {
				labels := map[string]string{}
				for k := range c.words {
					labels[fmt.Sprintf("example.com/label-%d", k)] = strings.Repeat("x", 40)
				}
				w.offers = append(w.offers, fleet.Offer{Name: "o" + strconv.Itoa(n), Provider: "p" + strconv.Itoa(n),
					Lendable: list("100", "200Gi"), Price: float64(all - n), Labels: labels})
			}
			client := fake.NewClientset()
			store := market.ConfigMap{Client: client, Namespace: "ns", Name: market.ConfigMapName("hub")}
			p := w.publisher()
			p.Store = store
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				go p.Run(ctx)
				synctest.Wait()
				cancel()
			})
			found, err := client.CoreV1().ConfigMaps("ns").Get(t.Context(), store.Name, metav1.GetOptions{})
			require.NoError(t, err)
			require.Less(t, found.Size(), 1<<20)
			m, err := store.Load(t.Context())
			require.NoError(t, err)
			require.Equal(t, all, len(m.Offers)+m.Dropped)
			require.GreaterOrEqual(t, len(m.Offers), c.atLeast)
			require.LessOrEqual(t, len(m.Offers), c.atMost)
			require.Equal(t, "o1499", m.Offers[0].Name, "the cheapest")
		})
	}
}

// When there are too many offers, the best offers of each group are kept at any price. Otherwise a group for GPUs, for
// example, might have no offer.
func TestBestOffersOfEachGroupAreKept(t *testing.T) {
	w := newWorld()
	w.offers = nil
	for n := range 1200 {
		o := fleet.Offer{Name: "o" + strconv.Itoa(n), Provider: "p" + strconv.Itoa(n), Lendable: list("100", "200Gi"),
			Price: float64(n)}
		if n >= 1100 {
			o.Labels = map[string]string{"gpu": "true"}
		}
		w.offers = append(w.offers, o)
	}
	w.groups = append(w.groups, fleet.Snapshot{Group: "gpu",
		Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "gpu", Shape: list("4", "8Gi"),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "true"}}}}})
	w.run(t, func(func(time.Duration)) {
		published, err := w.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, 200, published.Dropped)
		var prices []float64
		for _, o := range published.Offers {
			prices = append(prices, o.Price)
		}
		require.True(t, slices.IsSorted(prices))
		require.Equal(t, []float64{949, 1100, 1149}, []float64{prices[949], prices[950], prices[999]},
			"950 cheap ones and 50 with a GPU")
	})
}

// The market changes ten times a second. It is written at most once a second.
func TestWritesAreBounded(t *testing.T) {
	w := newWorld()
	w.run(t, func(pass func(time.Duration)) {
		for n := range 600 {
			w.set(func() { w.offers[0].Price = float64(n) })
			pass(100 * time.Millisecond)
		}
		require.LessOrEqual(t, w.written(), 60)
		require.Greater(t, w.written(), 1)
	})
}

// To order offers that are priced by node and offers that are priced by resource, the market compares the price of a
// node of 4 CPUs and 16 GiB.
func TestOffersAreOrderedByPrice(t *testing.T) {
	w := newWorld()
	priced := func(name string, price float64, prices map[corev1.ResourceName]float64) fleet.Offer {
		return fleet.Offer{Name: name, Provider: name, Lendable: list("8", "16Gi"), Price: price, Prices: prices}
	}
	w.offers = []fleet.Offer{priced("dear", 1, nil), priced("cpu", 0, map[corev1.ResourceName]float64{"cpu": 0.2}),
		priced("memory", 0, map[corev1.ResourceName]float64{"memory": 0.02}), priced("cheap", 0.1, nil)}
	w.run(t, func(func(time.Duration)) {
		published, err := w.Load(t.Context())
		require.NoError(t, err)
		var names []string
		for _, o := range published.Offers {
			names = append(names, o.Name)
		}
		require.Equal(t, []string{"cheap", "memory", "cpu", "dear"}, names)
	})
}

// Both stores of the market fulfil the same contract.
func TestStoresFulfilTheContract(t *testing.T) {
	client := fake.NewClientset()
	for name, store := range map[string]market.Store{
		"file":      market.File(filepath.Join(t.TempDir(), "market.json")),
		"configmap": market.ConfigMap{Client: client, Namespace: "ns", Name: market.ConfigMapName("hub")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.Load(t.Context())
			require.ErrorIs(t, err, market.ErrNone)
			for _, price := range []float64{1, 2} {
				want := market.Market{At: time.Unix(1, 0).UTC(), Offers: []market.Offer{{Name: "a", Price: price,
					Lendable: corev1.ResourceList{}, Free: corev1.ResourceList{}}}}
				require.NoError(t, store.Save(t.Context(), want))
				got, err := store.Load(t.Context())
				require.NoError(t, err)
				require.Equal(t, want, got)
			}
		})
	}
}

// A publication reads only those providers on which we have holds or peerings. For all other providers it uses the
// last known state. Before the first round of the observer, no market is published.
func TestOnlyActiveProvidersAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for n := range 100 {
			id := fmt.Sprint("p", n)
			w.offers = append(w.offers, fleet.Offer{Name: id, Provider: id, Lendable: list("8", "8Gi"), Price: 9})
		}
		w.active, w.unobserved = map[string]bool{"p7": true}, true
		w.states["p8"] = fleet.ProviderSnapshot{ID: "p8", Holds: []string{"lca-a-t0-1-1"}}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go w.publisher().Run(ctx)
		time.Sleep(10 * time.Second) // time in the bubble
		require.Zero(t, w.written())
		w.set(func() { w.unobserved = false })
		time.Sleep(3 * time.Second)
		require.Equal(t, 1, w.written())
		require.ElementsMatch(t, []string{"p7", "p8"}, w.read)
		require.Len(t, w.market.Offers, 101)
	})
}
