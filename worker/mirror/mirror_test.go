package mirror_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/mirror"
)

const namespace = "liqo-autoscaler"

var (
	groups = mirror.GroupVersion.WithResource("liqonodegroups")
	offers = mirror.GroupVersion.WithResource("liqooffers")
)

// api is an API server with both CRDs. It counts the requests.
type api struct {
	*fake.FakeDynamicClient
	mu     sync.Mutex
	writes []time.Time
	lists  int
	fails  error // the error that each request returns
	made   int
	log    bytes.Buffer
}

func newAPI(objects ...runtime.Object) *api {
	a := &api{FakeDynamicClient: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{groups: "LiqoNodeGroupList", offers: "LiqoOfferList"}, objects...)}
	a.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if action.GetVerb() == "list" {
			a.lists++
		} else {
			a.writes = append(a.writes, time.Now())
		}
		if write, ok := action.(clienttesting.CreateAction); ok { // the fake API server sets neither of the two fields
			u := write.GetObject().(*unstructured.Unstructured)
			a.made++
			u.SetUID("uid")
			u.SetGeneration(1)
			u.SetResourceVersion(strconv.Itoa(a.made))
		}
		return a.fails != nil, nil, a.fails
	})
	return a
}

func (a *api) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fails = err
}

func (a *api) count() (writes, lists int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.writes), a.lists
}

// names returns the names of the objects of a resource.
func (a *api) names(t *testing.T, of schema.GroupVersionResource) (names []string) {
	t.Helper()
	kind := map[string]mirror.Kind{"liqonodegroups": mirror.KindGroup, "liqooffers": mirror.KindOffer}[of.Resource]
	list, err := a.Tracker().List(of, of.GroupVersion().WithKind(string(kind)), namespace)
	require.NoError(t, err)
	for _, u := range list.(*unstructured.UnstructuredList).Items {
		names = append(names, u.GetName())
	}
	slices.Sort(names)
	return names
}

func (a *api) get(t *testing.T, of schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := a.Tracker().Get(of, namespace, name)
	require.NoError(t, err)
	return o.(*unstructured.Unstructured)
}

// runs starts the mirror of a hub, which ends with the test.
func (a *api) runs(t *testing.T, hub string) *mirror.Mirror {
	t.Helper()
	m := mirror.New(mirror.Cluster{Client: a, Namespace: namespace, Hub: hub},
		slog.New(slog.NewTextHandler(&a.log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return m
}

// pass lets the mirror work for the given time.
func pass(d time.Duration) {
	synctest.Wait()
	<-time.After(d)
	synctest.Wait()
}

func group(name string, phases ...fleet.Phase) fleet.Snapshot {
	g := fleet.Snapshot{Group: name, Min: 0, Max: 4, Target: len(phases),
		Spec: &fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: name}}}
	for n, phase := range phases {
		g.Instances = append(g.Instances, fleet.InstanceView{Name: fmt.Sprint(n), Phase: phase})
	}
	return g
}

func offer(name string) market.Offer {
	return market.Offer{Name: name, Provider: name + "-id", Nodes: 1, Price: 0.08,
		Lendable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16")},
		Free:     corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("14")}}
}

// conditions returns the status of an object's conditions with their reasons.
func conditions(t *testing.T, u *unstructured.Unstructured) (all []string) {
	t.Helper()
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	require.NoError(t, err)
	for _, one := range list {
		c := one.(map[string]any)
		all = append(all, fmt.Sprintf("%s=%s %s", c["type"], c["status"], c["reason"]))
	}
	return all
}

func TestGroupsAreMirrored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		m := a.runs(t, "default")
		pass(90 * time.Minute)
		now := time.Now() // half past one
		cost := money.Cost{Currency: "EUR", Since: now.Add(-time.Hour), At: now.Add(-time.Hour),
			Providers: map[string]money.ProviderCost{"milan": {Rate: money.Of(0.5), Nodes: 1}}}
		grows := group("grows", fleet.Ready, fleet.Joining, fleet.Failed)
		grows.Cost = cost
		grows.Instances[2].Failure = &fleet.Failure{Code: fleet.CodeLost}
		paused := group("paused", fleet.Ready)
		paused.Paused, paused.Condition = true, "each build fails\x1b[31m"
		retired := group("retired")
		retired.Notice = fleet.GroupNotice{Name: fleet.BlockRetired, Message: "it is not configured"}
		m.Groups([]fleet.Snapshot{grows, paused, retired, {Group: "new"}}, nil, nil)
		pass(time.Minute)
		for _, name := range a.names(t, groups) {
			valid(t, "liqonodegroups", a.get(t, groups, name))
		}
		status := a.get(t, groups, "grows").Object["status"].(map[string]any)
		require.Equal(t, []any{int64(3), int64(1), int64(1), int64(1), int64(4)},
			[]any{status["targetSize"], status["ready"], status["pending"], status["failed"], status["max"]})
		require.Equal(t, []any{"0.5", "0.25", "lost"}, []any{status["hourlyCost"], status["monthlyCost"],
			strings.ToLower(status["why"].(string))})
		require.Equal(t, []string{"Ready=False InstancesFailed", "CanGrow=True BelowMax", "ConfigInForce=True AsConfigured",
			"Degraded=False AsExpected"}, conditions(t, a.get(t, groups, "grows")))
		require.Equal(t, []string{"Ready=True InstancesReady", "CanGrow=False Paused", "ConfigInForce=True AsConfigured",
			"Degraded=True BuildFails"}, conditions(t, a.get(t, groups, "paused")))
		require.NotContains(t, fmt.Sprint(a.get(t, groups, "paused").Object), "\x1b")
		require.Equal(t, []string{"Ready=True InstancesReady", "CanGrow=False Retired", "ConfigInForce=False Retired",
			"Degraded=False AsExpected"}, conditions(t, a.get(t, groups, "retired")))
		require.Contains(t, conditions(t, a.get(t, groups, "new")), "CanGrow=False NotConfigured")
	})
}

func TestOffersAreMirrored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		m := a.runs(t, "default")
		past := time.Now().Add(-time.Hour)
		cordoned, closed, expired, full := offer("cordoned"), offer("closed"), offer("expired"), offer("full")
		cordoned.Cordoned, cordoned.Peered = true, true
		closed.Closed, closed.Removing, closed.Peered = "it is drained", past, true
		expired.Expires = &past
		full.MaxNodes, full.Price = 1, 0
		full.Prices = map[corev1.ResourceName]float64{"cpu": 0.03, "memory": 0.004}
		other := offer("full")
		other.Provider = "zurich"
		m.Offers([]market.Offer{offer("milan"), cordoned, closed, expired, full, other, offer("No name")})
		pass(time.Minute)
		names := a.names(t, offers)
		require.Len(t, names, 7)
		for _, name := range names {
			valid(t, "liqooffers", a.get(t, offers, name))
		}
		for name, want := range map[string][]string{
			"milan":    {"Available=True Offered", "Cordoned=False NotCordoned", "Peered=False NoPeering"},
			"cordoned": {"Available=False Cordoned", "Cordoned=True CordonedByOperator", "Peered=True PeeringExists"},
			"closed":   {"Available=False ProviderRefuses", "Cordoned=False NotCordoned", "Peered=False Removing"},
			"expired":  {"Available=False Expired", "Cordoned=False NotCordoned", "Peered=False NoPeering"},
			"full":     {"Available=False AtMaxNodes", "Cordoned=False NotCordoned", "Peered=False NoPeering"},
		} {
			require.Equal(t, want, conditions(t, a.get(t, offers, name)), name)
		}
		status := a.get(t, offers, "milan").Object["status"].(map[string]any)
		require.Equal(t, []any{"milan-id", "0.08", "Available", map[string]any{"cpu": "14", "memory": "0"}},
			[]any{status["provider"], status["price"], status["condition"], status["free"]})
		require.Equal(t, "cpu=0.03,memory=0.004",
			a.get(t, offers, "full").Object["status"].(map[string]any)["price"])
	})
}

// The mirror writes an object only when its content differs. A condition keeps the time at which its status changed.
func TestWritesOnlyOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		m := a.runs(t, "default")
		made := time.Now()
		for range 60 {
			m.Groups([]fleet.Snapshot{group("a", fleet.Joining)}, nil, nil)
			m.Offers([]market.Offer{offer("milan")})
			pass(time.Minute)
		}
		writes, lists := a.count()
		require.Equal(t, 4, writes, "each object is created, and then receives its status")
		require.InDelta(t, 2*12, lists, 4)

		both := group("a", fleet.Joining, fleet.Joining)
		m.Groups([]fleet.Snapshot{both}, nil, nil)
		pass(time.Minute)
		writes, _ = a.count()
		require.Equal(t, 5, writes)
		ready := func() map[string]any {
			list, _, _ := unstructured.NestedSlice(a.get(t, groups, "a").Object, "status", "conditions")
			return list[0].(map[string]any)
		}
		require.Equal(t, made.UTC().Format(time.RFC3339), ready()["lastTransitionTime"])
		require.Equal(t, int64(1), ready()["observedGeneration"])
		m.Groups([]fleet.Snapshot{group("a", fleet.Ready)}, nil, nil)
		pass(time.Minute)
		require.Equal(t, made.Add(61*time.Minute).UTC().Format(time.RFC3339), ready()["lastTransitionTime"])
	})
}

// A group whose costs grow is written once an hour, and not in each round.
func TestCostsAreWrittenHourly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		m := a.runs(t, "default")
		g := group("a", fleet.Ready)
		g.Cost = money.Cost{Currency: "EUR", Since: time.Now(), At: time.Now(),
			Providers: map[string]money.ProviderCost{"milan": {Rate: money.Of(0.5), Nodes: 1}}}
		for range 6 * 60 {
			m.Groups([]fleet.Snapshot{g}, nil, nil)
			pass(time.Minute)
		}
		writes, _ := a.count()
		require.InDelta(t, 2+6, writes, 1)
	})
}

// The mirror writes a thousand groups at five writes a second. For an object that waits for its write, the mirror
// writes the newest content.
func TestThousandGroupsAreWrittenAtFiveASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		m := a.runs(t, "default")
		var all []fleet.Snapshot
		for n := range 1000 {
			all = append(all, group(fmt.Sprintf("g%03d", n)))
		}
		m.Groups(all, nil, nil)
		pass(10 * time.Second)
		newer := slices.Clone(all)
		newer[999].Target = 7
		begin := time.Now()
		m.Groups(newer, nil, nil)
		require.Equal(t, begin, time.Now(), "it does not block")
		pass(400 * time.Second)
		require.Len(t, a.names(t, groups), 1000)
		require.Equal(t, int64(7), a.get(t, groups, "g999").Object["status"].(map[string]any)["targetSize"])
		require.Len(t, a.writes, 2000)
		for n := 5; n < len(a.writes); n++ {
			require.GreaterOrEqual(t, a.writes[n].Sub(a.writes[n-5]), time.Second-time.Microsecond)
		}
	})
}

// The mirror deletes the objects of groups and offers that are gone. It keeps the objects of groups that it cannot
// read. A new leader that has no data yet keeps all objects.
func TestObjectsOfGoneGroupsAreDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		m := a.runs(t, "default")
		m.Groups([]fleet.Snapshot{group("a"), group("b"), group("c")}, nil, nil)
		m.Offers([]market.Offer{offer("milan"), offer("rome")})
		pass(time.Minute)
		m.Groups([]fleet.Snapshot{group("a")}, []string{"b"}, nil)
		m.Offers([]market.Offer{offer("rome")})
		pass(time.Minute)
		require.Equal(t, []string{"a", "b"}, a.names(t, groups))
		require.Equal(t, []string{"rome"}, a.names(t, offers))

		a.runs(t, "default") // the mirror of another leader
		pass(time.Hour)
		require.Equal(t, []string{"a", "b"}, a.names(t, groups))
		require.Equal(t, []string{"rome"}, a.names(t, offers))
	})
}

// The mirror neither changes nor deletes objects of other owners and of other hubs.
func TestForeignObjectsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign := &unstructured.Unstructured{Object: map[string]any{"apiVersion": mirror.GroupVersion.String(),
			"kind": "LiqoNodeGroup", "metadata": map[string]any{"name": "a", "namespace": namespace},
			"status": map[string]any{"why": "mine"}}}
		a := newAPI(foreign)
		m, east := a.runs(t, "default"), a.runs(t, "east")
		for range 30 {
			m.Groups([]fleet.Snapshot{group("a"), group("b")}, nil, nil)
			east.Groups([]fleet.Snapshot{group("c")}, nil, nil)
			pass(time.Minute)
		}
		require.Equal(t, []string{"a", "b", "c"}, a.names(t, groups))
		require.Equal(t, foreign.Object, a.get(t, groups, "a").Object)
		require.Equal(t, map[string]string{"liqo-autoscaler.io/managed-by": "liqo-autoscaler",
			"liqo-autoscaler.io/hub": "east"}, a.get(t, groups, "c").GetLabels())
		require.Equal(t, 1, strings.Count(a.log.String(), "cannot write an object"), "%s", a.log.String())
		m.Groups(nil, nil, nil)
		east.Groups(nil, nil, nil)
		pass(time.Minute)
		require.Equal(t, []string{"a"}, a.names(t, groups))
	})
}

// Without the CRDs, or without the permission to use them, the mirror tries again every few minutes. The mirror logs
// the error once.
func TestMirrorRetriesWithoutCRDs(t *testing.T) {
	for name, err := range map[string]error{
		"absent": &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Code: 404,
			Message: "the server could not find the requested resource"}},
		"forbidden": apierrors.NewForbidden(groups.GroupResource(), "", nil),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI()
				a.fail(err)
				m := a.runs(t, "default")
				for range 60 {
					m.Groups([]fleet.Snapshot{group("a")}, nil, nil)
					pass(time.Minute)
				}
				writes, lists := a.count()
				require.Zero(t, writes)
				require.InDelta(t, 20, lists, 1)
				require.Equal(t, 1, strings.Count(a.log.String(), "\n"), "%s", a.log.String())
				a.fail(nil)
				pass(4 * time.Minute)
				require.Equal(t, []string{"a"}, a.names(t, groups))
			})
		})
	}
}

// When a person has changed or deleted an object, the mirror restores its content within some minutes.
func TestObjectsChangedByHandAreRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		m := a.runs(t, "default")
		m.Groups([]fleet.Snapshot{group("a"), group("b")}, nil, nil)
		pass(time.Minute)
		changed := a.get(t, groups, "a").DeepCopy()
		require.NoError(t, unstructured.SetNestedField(changed.Object, int64(99), "status", "max"))
		require.NoError(t, a.Tracker().Update(groups, changed, namespace))
		require.NoError(t, a.Tracker().Delete(groups, namespace, "b"))
		pass(6 * time.Minute)
		require.Equal(t, []string{"a", "b"}, a.names(t, groups))
		require.Equal(t, int64(4), a.get(t, groups, "a").Object["status"].(map[string]any)["max"])
	})
}

// The CRDs define the kinds that the mirror writes, with the documented columns.
func TestCRDsMatchTheMirror(t *testing.T) {
	for resource, want := range map[string]struct {
		kind    mirror.Kind
		short   string
		columns []string
	}{
		"liqonodegroups": {mirror.KindGroup, "lng", []string{
			"Target", "Ready", "Pending", "Min", "Max", "Cost/h", "Why", "Age"}},
		"liqooffers": {mirror.KindOffer, "lo", []string{
			"Provider", "Nodes", "CPU", "Memory", "Price", "Condition", "Age"}},
	} {
		d := definitionOf(t, resource)
		require.Equal(t, resource, want.kind.Resource())
		require.Equal(t, resource+"."+mirror.GroupVersion.Group, d.Metadata.Name)
		require.Equal(t, string(want.kind), d.Spec.Names.Kind)
		require.Equal(t, resource, d.Spec.Names.Plural)
		require.Equal(t, []string{want.short}, d.Spec.Names.ShortNames)
		require.Equal(t, []string{"liqo-autoscaler"}, d.Spec.Names.Categories)
		require.Equal(t, "Namespaced", d.Spec.Scope)
		v := d.Spec.Versions[0]
		require.Equal(t, mirror.GroupVersion.Version, v.Name)
		require.NotNil(t, v.Subresources.Status)
		require.NotContains(t, v.Schema.OpenAPIV3Schema.Properties, "spec")
		var columns []string
		for _, c := range v.AdditionalPrinterColumns {
			columns = append(columns, c.Name)
		}
		require.Equal(t, want.columns, columns)
	}
}
