package agent

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

var toBoth = Config{Offers: []OfferConfig{{Consumer: "munich"}, {Consumer: "turin"}}}

// room returns a cluster of one node with this number of CPUs.
func room(cpus string) World {
	return World{Nodes: []*corev1.Node{node("a", amounts(cpus, "600Gi", "pods", "500"))}}
}

// ask creates n slices of one CPU each, which belong alternately to two consumers.
func (c *cluster) ask(t *testing.T, n int) {
	t.Helper()
	consumers := []string{"munich", "turin"}
	for _, id := range consumers {
		c.tenant(t, id)
	}
	for i := range n {
		id := consumers[i%2]
		_, err := c.objects.Resource(sliceResource).Namespace("liqo-tenant-"+id).Create(t.Context(), asking(id, i),
			metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// granted returns the number of granted slices.
func (c *cluster) granted(t *testing.T) (n int) {
	t.Helper()
	list, err := c.objects.Resource(sliceResource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		if sliceOf(&list.Items[i]).condition(conditionResources) == accepted {
			n++
		}
	}
	return n
}

// rounds runs the granter until no slice needs another round.
func rounds(t *testing.T, g *granter) {
	t.Helper()
	for n, again := 0, time.Duration(1); again > 0; n++ {
		require.Less(t, n, 200)
		again, _ = g.round(t.Context())
		clear(g.failures)
	}
}

// twin returns the same cluster with a client of its own, because a fake client serves one request at a time.
func (c *cluster) twin() *cluster {
	twin := newCluster()
	for own, other := range map[*clienttesting.Fake]clienttesting.ObjectTracker{
		&twin.objects.Fake: c.objects.Tracker(), &twin.kube.Fake: c.kube.Tracker(),
	} {
		own.ReactionChain = nil
		own.AddReactor("*", "*", clienttesting.ObjectReaction(other))
	}
	twin.versionedRecordOf(c.kube.Tracker())
	return twin
}

// during calls the function do once, in the middle of the first request with this verb for this resource.
func during(f *clienttesting.Fake, verb, resource string, do func()) {
	var once sync.Once
	f.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		once.Do(do)
		return false, nil, nil
	})
}

// An agent freezes in the middle of a round, and another agent grants a slice in the meantime. The free capacity
// suffices for only one of two slices. Exactly one slice is granted.
func TestFrozenAgentGrantsNoRoomTwice(t *testing.T) {
	for _, at := range [][2]string{{"list", "tenants"}, {"list", "resourceslices"}, {"create", "configmaps"},
		{"update", "resourceslices"}} {
		t.Run(at[0]+" "+at[1], func(t *testing.T) {
			c := newCluster()
			c.versioned()
			c.ask(t, 2)
			twin := c.twin()
			frozen, other := c.granter(toBoth, room("1")), twin.granter(toBoth, room("1"))
			f := &c.objects.Fake
			if at[1] == "configmaps" {
				f = &c.kube.Fake
			}
			during(f, at[0], at[1], func() { rounds(t, other) })
			rounds(t, frozen)
			require.Equal(t, map[string]string{"munich-000": accepted, "turin-001": denied}, c.answered(t))
		})
	}
}

// Two agents concurrently grant slices in one cluster, and 60 of 100 slices fit. Exactly 60 slices are granted. A
// cluster has two agents if it uses two discovery servers, because the agent of each server has its own Lease.
func TestTwoAgentsGrantNoRoomTwice(t *testing.T) {
	c := newCluster()
	c.versioned()
	c.ask(t, 100)
	var both sync.WaitGroup
	for range 2 {
		g := c.granter(toBoth, room("60"))
		both.Go(func() { rounds(t, g) })
	}
	both.Wait()
	require.Equal(t, 60, c.granted(t), "of 60 CPUs")
}

// Another agent has granted a slice that takes the whole capacity, and the watch has not delivered this slice. The
// agent denies the next slice. After the granted slice is deleted, its capacity is free again, although the watch has
// never delivered the slice.
func TestLateWatchGrantsNoRoomTwice(t *testing.T) {
	c := newCluster()
	c.versioned()
	c.ask(t, 2)
	c.remove(t, "turin", 1)
	rounds(t, c.granter(toBoth, room("1")))
	require.Equal(t, map[string]string{"munich-000": accepted}, c.answered(t))

	c.create(t, asking("turin", 1))
	late := c.granter(toBoth, room("1"))
	watched := late.world
	late.world = func() World {
		w := watched()
		w.Slices = slices.DeleteFunc(w.Slices, func(s Slice) bool { return s.Name == "munich-000" })
		return w
	}
	rounds(t, late)
	require.Equal(t, map[string]string{"munich-000": accepted, "turin-001": denied}, c.answered(t))

	c.remove(t, "munich", 0)
	c.create(t, asking("turin", 2))
	rounds(t, late)
	require.Equal(t, map[string]string{"turin-001": denied, "turin-002": accepted}, c.answered(t))
}

// remove deletes the consumer's slice with this number.
func (c *cluster) remove(t *testing.T, consumer string, n int) {
	t.Helper()
	o := asking(consumer, n)
	require.NoError(t, c.objects.Resource(sliceResource).Namespace(o.GetNamespace()).Delete(t.Context(), o.GetName(),
		metav1.DeleteOptions{}))
}

// An agent that restarts knows the grants of its predecessor, even a grant that is not in the slice's status yet.
func TestRestartedAgentKnowsEarlierGrants(t *testing.T) {
	c := newCluster()
	c.ask(t, 1)
	c.objects.PrependReactor("update", "resourceslices", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("killed")
	})
	_, err := c.granter(toBoth, room("1")).round(t.Context())
	require.ErrorContains(t, err, "killed")
	c.objects.ReactionChain = c.objects.ReactionChain[1:]

	c.create(t, asking("turin", 1))
	rounds(t, c.granter(toBoth, room("1")))
	require.Equal(t, map[string]string{"munich-000": accepted, "turin-001": denied}, c.answered(t))
}

// The agent creates its first record from the grants in the status of the slices. When a slice is deleted, its grant
// leaves the record.
func TestFirstRecordContainsTheGrantsOfTheSlices(t *testing.T) {
	c := newCluster()
	c.ask(t, 2)
	rounds(t, c.granter(toBoth, room("1")))
	require.NoError(t, c.kube.CoreV1().ConfigMaps("liqo").Delete(t.Context(), RecordName, metav1.DeleteOptions{}))
	c.create(t, asking("turin", 3))
	g := c.granter(toBoth, room("1"))
	rounds(t, g)
	require.Equal(t, map[string]string{"munich-000": accepted, "turin-001": denied, "turin-003": denied}, c.answered(t))
	require.Len(t, g.record.grants(), 1)

	require.NoError(t, c.objects.Resource(sliceResource).Namespace("liqo-tenant-munich").Delete(t.Context(),
		"munich-000", metav1.DeleteOptions{}))
	c.create(t, asking("turin", 5))
	rounds(t, g)
	require.Equal(t, accepted, c.answered(t)["turin-005"])
	require.Len(t, g.record.grants(), 1)
}
