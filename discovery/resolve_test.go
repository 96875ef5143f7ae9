package discovery_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// clock is a clock that the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// source is a Source whose offers a test sets.
type source struct {
	offers   []fleet.Offer
	problems []discovery.Problem
	err      error
	takes    time.Duration // duration of a list
}

func (*source) Name() string { return "test" }

func (s *source) List(ctx context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	if s.takes > 0 {
		select {
		case <-time.After(s.takes):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	return append([]fleet.Offer(nil), s.offers...), append([]discovery.Problem(nil), s.problems...), s.err
}

// clusters identifies a cluster by the name of its Secret. It counts the requests, and a test can make it hang or fail.
type clusters struct {
	mu      sync.Mutex
	ids     map[string]string
	fail    map[string]error
	hang    map[string]bool
	asked   map[string]int
	running int
	most    int
	gate    chan struct{} // when set, every call waits for it
}

func (c *clusters) Identify(ctx context.Context, cr fleet.Credentials) (string, error) {
	key := filepath.Base(cr.KubeconfigFile)
	if cr.SecretRef != nil {
		key = cr.SecretRef.Name
	}
	c.mu.Lock()
	if c.asked == nil {
		c.asked = map[string]int{}
	}
	c.asked[key]++
	c.running++
	c.most = max(c.most, c.running)
	id, err, hang, gate := c.ids[key], c.fail[key], c.hang[key], c.gate
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.running--
		c.mu.Unlock()
	}()
	if hang {
		<-ctx.Done()
		return "", ctx.Err()
	}
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return id, err
}

func (c *clusters) count(key string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[key]
}

func (c *clusters) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func offer(name string) fleet.Offer {
	return fleet.Offer{
		Name:        name,
		Credentials: fleet.Credentials{SecretRef: &fleet.SecretRef{Namespace: "ns", Name: name, Key: "kubeconfig"}},
		Lendable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods: resource.MustParse("110"),
		},
	}
}

func names(offers []fleet.Offer) []string {
	out := []string{}
	for _, o := range offers {
		out = append(out, o.Name+"="+o.Provider)
	}
	return out
}

func texts(problems []discovery.Problem) []string {
	out := []string{}
	for _, p := range problems {
		out = append(out, p.String())
	}
	return out
}

func TestOffersAreIdentifiedAndStamped(t *testing.T) {
	src := &source{offers: []fleet.Offer{offer("b"), offer("a")}, problems: []discovery.Problem{{Source: "test",
		Offer: "z", Message: "malformed"}}}
	cat := discovery.Resolve(src, &clusters{ids: map[string]string{"a": "milan", "b": "rome"}}, discovery.Options{})
	offers, problems, err := cat.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a=milan", "b=rome"}, names(offers))
	require.Equal(t, []string{"test: offer z: malformed"}, texts(problems))
	require.Equal(t, discovery.Epoch(offers[0]), offers[0].Epoch)
	require.NotEmpty(t, offers[0].Epoch)
}

func TestOneBadOfferDoesNotHideTheOthers(t *testing.T) {
	expired, later := start.Add(-time.Second), start.Add(time.Hour)
	old, fresh, claims, none := offer("old"), offer("fresh"), offer("claims"), offer("none")
	old.Expires, fresh.Expires = &expired, &later
	claims.Provider = "rome"
	none.Credentials = fleet.Credentials{}
	src := &source{offers: []fleet.Offer{old, fresh, claims, none, offer("a"), offer("b"), offer("dead"),
		offer("nameless")}}
	ids := &clusters{
		ids:  map[string]string{"fresh": "turin", "claims": "naples", "a": "milan", "b": "milan", "old": "turin"},
		fail: map[string]error{"dead": errors.New("dial: connection refused")},
	}
	offers, problems, err := discovery.Resolve(src, ids,
		discovery.Options{Now: (&clock{now: start}).Now}).Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"fresh=turin"}, names(offers), "the expired offer of turin is no rival")
	require.Equal(t, []string{
		"test: offer a: is of provider milan, like offer test/b: none is used until one declares provider: milan",
		"test: offer b: is of provider milan, like offer test/a: none is used until one declares provider: milan",
		"test: offer claims: declares provider rome, but its credentials lead to naples",
		"test: offer dead: dial: connection refused",
		"test: offer nameless: identify provider: the cluster has no id; is Liqo installed there?",
		"test: offer none: the offer has no credentials; give kubeconfigFile or secretRef",
		"test: offer old: expired at 2026-11-20T11:59:59Z; renew or remove it",
	}, texts(problems))
	require.Zero(t, ids.count("old"), "the cluster of an expired offer is not identified")
}

func TestOneProviderMayHaveThreeOffers(t *testing.T) {
	src := &source{offers: []fleet.Offer{offer("c"), offer("a"), offer("b")}}
	offers, problems, err := discovery.Resolve(src, &clusters{ids: map[string]string{"a": "m", "b": "m", "c": "m"}},
		discovery.Options{}).Offers(t.Context())
	require.NoError(t, err)
	require.Empty(t, offers)
	require.Len(t, problems, 3)
	require.Equal(t, "test: offer a: is of provider m, like offer test/b, offer test/c: none is used until one "+
		"declares provider: m", problems[0].String())
}

// apiSource is a source whose writers may write any id.
type apiSource struct{ source }

func (*apiSource) Name() string { return "api" }
func (*apiSource) Claims() bool { return true }

// A cluster falsely reports another cluster's id. If the other cluster is declared in an offer, or has a peering, it
// keeps its offer and its peering.
func TestFalseIDDisplacesNoKnownProvider(t *testing.T) {
	ids := &clusters{ids: map[string]string{"honest": "milan", "liar": "milan", "liar2": "milan"}}
	declared, liar := offer("honest"), offer("liar")
	declared.Provider = "milan"
	claimed := liar
	claimed.Provider = "milan"
	peered := func(name string) func(context.Context) ([]fleet.Provider, error) {
		return func(context.Context) ([]fleet.Provider, error) {
			return []fleet.Provider{{ID: "milan", Credentials: offer(name).Credentials}}, nil
		}
	}
	for name, c := range map[string]struct {
		first, second []fleet.Offer
		peered        func(context.Context) ([]fleet.Provider, error)
		serves        []string
	}{
		"none is declared, in one source": {first: []fleet.Offer{offer("honest"), liar}},
		"none is declared, in two":        {first: []fleet.Offer{liar}, second: []fleet.Offer{offer("honest")}},
		"one is declared, in one source":  {first: []fleet.Offer{declared, liar}, serves: []string{"honest=milan"}},
		"a writer's claim declares nothing": {first: []fleet.Offer{declared}, second: []fleet.Offer{claimed},
			serves: []string{"honest=milan"}},
		"two claim": {first: []fleet.Offer{offer("honest")}, second: []fleet.Offer{claimed}},
		"one is peered": {first: []fleet.Offer{liar, offer("liar2")}, second: []fleet.Offer{offer("honest")},
			peered: peered("honest"), serves: []string{"honest=milan"}},
		"a declaration beats a peering": {first: []fleet.Offer{declared, liar}, peered: peered("liar"),
			serves: []string{"honest=milan"}},
		"peerings cannot be listed": {first: []fleet.Offer{offer("honest"), liar},
			peered: func(context.Context) ([]fleet.Provider, error) { return nil, errors.New("no answer") }},
	} {
		t.Run(name, func(t *testing.T) {
			options := discovery.Options{Peered: c.peered}
			one := discovery.Resolve(&source{offers: c.first}, ids, options)
			two := discovery.Resolve(&apiSource{source{offers: c.second}}, ids, options)
			offers, problems, err := discovery.Merge(one, two).Offers(t.Context())
			require.NoError(t, err)
			require.Equal(t, append([]string{}, c.serves...), names(offers))
			require.NotEmpty(t, problems)
		})
	}
}

// The id that a cluster reports must have the right form.
func TestIDsAreChecked(t *testing.T) {
	ids := &clusters{ids: map[string]string{"evil": strings.Repeat("x", 3<<20), "odd": "a b", "good": "good"}}
	offers, problems, err := discovery.Resolve(&source{offers: []fleet.Offer{offer("evil"), offer("odd"), offer("good")}},
		ids, discovery.Options{}).Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"good=good"}, names(offers))
	require.Len(t, problems, 2)
	require.Less(t, len(problems[0].Message), 400)
}

// The reading time decides which of two offers is newer. A read alone does not change an offer's fingerprint.
func TestLaterReadIsNewer(t *testing.T) {
	clock := &clock{now: start}
	catalog := discovery.Resolve(&source{offers: []fleet.Offer{offer("a")}}, &clusters{ids: map[string]string{"a": "m"}},
		discovery.Options{Now: clock.Now})
	before, _, err := catalog.Offers(t.Context())
	require.NoError(t, err)
	clock.Advance(time.Minute)
	after, _, err := catalog.Offers(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Minute, after[0].ReadAt.Sub(before[0].ReadAt))
	require.Equal(t, before[0].Epoch, after[0].Epoch)
}

func TestIDsAreRememberedForABoundedTime(t *testing.T) {
	now := &clock{now: start}
	ids := &clusters{ids: map[string]string{"a": "milan"}, fail: map[string]error{"b": errors.New("no route")}}
	version := "1"
	cat := discovery.Resolve(&source{offers: []fleet.Offer{offer("a"), offer("b")}}, ids, discovery.Options{
		Now: now.Now, KeepID: time.Minute, KeepFailure: 10 * time.Second,
		SecretVersion: func(context.Context, fleet.SecretRef) (string, error) { return version, nil },
	})
	list := func() []string {
		offers, problems, err := cat.Offers(t.Context())
		require.NoError(t, err)
		require.Len(t, offers, 2-len(problems))
		return names(offers)
	}
	require.Equal(t, []string{"a=milan"}, list())
	require.Equal(t, []string{"a=milan"}, list())
	require.Equal(t, 1, ids.count("a"))
	require.Equal(t, 1, ids.count("b"), "a failure is remembered too")

	now.Advance(10 * time.Second)
	ids.set(func() { ids.fail = nil; ids.ids["b"] = "rome" })
	require.Equal(t, []string{"a=milan", "b=rome"}, list(), "a failure is tried again soon")
	require.Equal(t, 1, ids.count("a"))

	ids.set(func() { ids.ids["a"] = "turin" })
	version = "2"
	require.Equal(t, []string{"a=turin", "b=rome"}, list(), "new credentials are used immediately")
	require.Equal(t, 2, ids.count("a"))

	now.Advance(time.Minute)
	list()
	require.Equal(t, 3, ids.count("a"), "an id is not believed for ever")
}

func TestChangedKubeconfigFileIsIdentifiedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	o := offer("a")
	o.Credentials = fleet.Credentials{KubeconfigFile: path}
	ids := &clusters{ids: map[string]string{"a": "milan"}}
	cat := discovery.Resolve(&source{offers: []fleet.Offer{o}}, ids, discovery.Options{})
	problem := func() string {
		offers, problems, err := cat.Offers(t.Context())
		require.NoError(t, err)
		if len(problems) == 0 {
			require.Equal(t, []string{"a=milan"}, names(offers))
			return ""
		}
		require.Empty(t, offers)
		return problems[0].String()
	}
	require.Contains(t, problem(), "test: offer a: read kubeconfigFile: open "+path)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.Contains(t, problem(), "is empty")
	require.NoError(t, os.WriteFile(path, make([]byte, 1<<20+1), 0o600))
	require.Contains(t, problem(), "larger than 1 MiB")
	require.Zero(t, ids.count("a"))
	require.NoError(t, os.WriteFile(path, []byte("v1"), 0o600))
	require.Empty(t, problem())
	require.NoError(t, os.WriteFile(path, []byte("v2"), 0o600))
	require.Empty(t, problem())
	require.Equal(t, 2, ids.count("a"))
}

func TestDeadProviderCostsOneTimeout(t *testing.T) {
	synctest.Test(t, testADeadProviderCostsOneTimeout)
}

func testADeadProviderCostsOneTimeout(t *testing.T) {
	ids := &clusters{ids: map[string]string{"a": "milan"}, hang: map[string]bool{"dead": true}}
	cat := discovery.Resolve(&source{offers: []fleet.Offer{offer("a"), offer("dead")}}, ids,
		discovery.Options{PerOffer: 50 * time.Millisecond})
	for range 3 {
		offers, problems, err := cat.Offers(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"a=milan"}, names(offers))
		require.Equal(t, []string{"test: offer dead: identify provider: no answer within 50ms: context deadline exceeded"},
			texts(problems))
	}
	require.Equal(t, 1, ids.count("dead"))
}

// One provider has never answered, and another provider stops answering. When such a provider is read again, it
// delays the list only for a moment. Its last answer, if there is one, stays valid during this time.
func TestDeadProviderDelaysTheListOnlyBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := &clusters{ids: map[string]string{"a": "milan", "b": "rome"}, hang: map[string]bool{"dead": true}}
		cat := discovery.Resolve(&source{offers: []fleet.Offer{offer("a"), offer("b"), offer("dead")}}, ids,
			discovery.Options{})
		list := func(most time.Duration, want ...string) {
			t.Helper()
			began := time.Now()
			offers, _, err := cat.Offers(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, names(offers))
			require.LessOrEqual(t, time.Since(began), most)
		}
		list(5*time.Second, "a=milan", "b=rome") // takes the full time, because no answer is known yet
		for range 3 {
			<-time.After(31 * time.Second)
			list(time.Second, "a=milan", "b=rome")
		}
		ids.set(func() { ids.hang["b"] = true })
		<-time.After(10 * time.Minute)
		list(time.Second, "a=milan", "b=rome")
		<-time.After(5 * time.Second)
		list(0, "a=milan")
		ids.set(func() { ids.ids["dead"], ids.hang = "turin", nil })
		<-time.After(31 * time.Second)
		list(0, "a=milan", "b=rome", "dead=turin")
	})
}

func TestIdentificationsAreParallelButBounded(t *testing.T) {
	synctest.Test(t, testIdentificationsAreParallelButBounded)
}

func testIdentificationsAreParallelButBounded(t *testing.T) {
	src, ids := &source{}, &clusters{ids: map[string]string{}, gate: make(chan struct{})}
	for _, c := range "abcdefghijkl" {
		src.offers = append(src.offers, offer(string(c)))
		ids.ids[string(c)] = "id-" + string(c)
	}
	cat := discovery.Resolve(src, ids, discovery.Options{Parallel: 3})
	var both sync.WaitGroup
	for range 2 { // two callers share the bound and the answers
		both.Add(1)
		go func() {
			defer both.Done()
			offers, problems, err := cat.Offers(context.Background())
			if err != nil || len(problems) != 0 || len(offers) != 12 {
				t.Errorf("got %d offers, %v, %v", len(offers), problems, err)
			}
		}()
	}
	require.Eventually(t, func() bool { ids.mu.Lock(); defer ids.mu.Unlock(); return ids.running == 3 }, 30*time.Second,
		time.Millisecond)
	close(ids.gate)
	both.Wait()
	require.Equal(t, 3, ids.most)
	for key, n := range ids.asked {
		require.Equal(t, 1, n, key)
	}
}

func TestSlowProvidersAnswerServesTheNextCall(t *testing.T) {
	synctest.Test(t, testASlowProviderServesTheNextCall)
}

func testASlowProviderServesTheNextCall(t *testing.T) {
	ids := &clusters{ids: map[string]string{"a": "milan"}, gate: make(chan struct{})}
	cat := discovery.Resolve(&source{offers: []fleet.Offer{offer("a")}}, ids,
		discovery.Options{Wait: 20 * time.Millisecond})
	offers, problems, err := cat.Offers(t.Context())
	require.NoError(t, err)
	require.Empty(t, offers)
	require.Equal(t, []string{"test: offer a: its provider is still being identified; the offer is not used before"},
		texts(problems))
	close(ids.gate)
	require.Eventually(t, func() bool {
		offers, _, err := cat.Offers(context.Background())
		return err == nil && len(offers) == 1
	}, 2*time.Minute, time.Millisecond)
	require.Equal(t, 1, ids.count("a"), "the identification continued without its caller")
}

func TestOffersEndsWithItsContext(t *testing.T) {
	ids := &clusters{hang: map[string]bool{"a": true}}
	ctx, cancel := context.WithCancel(t.Context())
	cat := discovery.Resolve(&source{offers: []fleet.Offer{offer("a")}}, ids, discovery.Options{})
	done := make(chan error, 1)
	go func() {
		_, _, err := cat.Offers(ctx)
		done <- err
	}()
	require.Eventually(t, func() bool { return ids.count("a") == 1 }, 2*time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}

func TestFailedSourceKeepsItsLastOffers(t *testing.T) {
	boom := errors.New("boom")
	_, _, err := discovery.Resolve(&source{err: boom}, &clusters{}, discovery.Options{}).Offers(t.Context())
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "list offers of test: ")
}

// A source hangs, for example a discovery server whose packets are lost. When it has answered before, it delays the
// offers of other sources only for a moment, and its last answer is used in the meantime.
func TestHangingSourceDelaysOthersOnlyBriefly(t *testing.T) {
	for name, c := range map[string]struct {
		src  source
		want []string
	}{
		"after a list":      {source{offers: []fleet.Offer{offer("a")}}, []string{"a=milan", "b=rome"}},
		"after an error":    {source{err: errors.New("down")}, []string{"b=rome"}},
		"from the first on": {source{err: errors.New("down"), takes: 10 * time.Second}, []string{"b=rome"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ids := &clusters{ids: map[string]string{"a": "milan", "b": "rome"}}
				hung, other := &c.src, &source{offers: []fleet.Offer{offer("b")}}
				all := discovery.Merge(discovery.Resolve(hung, ids, discovery.Options{}),
					discovery.Resolve(other, ids, discovery.Options{}))
				_, _, err := all.Offers(t.Context())
				require.NoError(t, err)
				hung.takes = 10 * time.Second
				for range 5 {
					began := time.Now()
					offers, problems, err := all.Offers(t.Context())
					require.NoError(t, err)
					require.Equal(t, c.want, names(offers))
					require.NotEmpty(t, problems)
					require.LessOrEqual(t, time.Since(began), time.Second)
				}
				<-time.After(10 * time.Second) // the last request ends
			})
		})
	}
}

// A discovery server may list 20000 offers. Their providers are remembered, because otherwise each call would send a
// request to every provider.
func TestManyProvidersAreRemembered(t *testing.T) {
	src, ids := &source{}, &clusters{ids: map[string]string{}}
	for n := range 20000 {
		name := "p" + strconv.Itoa(n)
		src.offers, ids.ids[name] = append(src.offers, offer(name)), name
	}
	cat := discovery.Resolve(src, ids, discovery.Options{Wait: 5 * time.Minute}) // suffices on a busy machine
	for range 2 {
		offers, _, err := cat.Offers(t.Context())
		require.NoError(t, err)
		require.Len(t, offers, len(src.offers))
	}
	for name, n := range ids.asked {
		require.Equal(t, 1, n, name)
	}
}
