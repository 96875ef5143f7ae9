package agent

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

var toBoth = Config{Offers: []OfferConfig{{Consumer: "munich"}, {Consumer: "turin"}}}

// room is a node with so many CPUs.
func room(cpus string) World {
	return World{Nodes: []*corev1.Node{node("a", amounts(cpus, "600Gi", "pods", "500"))}}
}

// ask creates n slices of one CPU each, of two consumers in turn.
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

// granted is how many slices are granted.
func (c *cluster) granted(t *testing.T) (n int) {
	t.Helper()
	list, err := c.objects.Resource(sliceResource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		s, err := sliceOf(&list.Items[i])
		require.NoError(t, err)
		if s.condition(conditionResources) == accepted {
			n++
		}
	}
	return n
}

// overtaken has another agent's grant of the first slice take effect just before this agent writes its own.
func (c *cluster) overtaken() {
	landed := false
	c.objects.PrependReactor("update", "resourceslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if landed {
			return false, nil, nil
		}
		landed = true
		grant := a.(clienttesting.UpdateAction).GetObject().(*unstructured.Unstructured).DeepCopy()
		version, err := strconv.Atoi(grant.GetResourceVersion())
		if err != nil {
			return true, nil, err
		}
		grant.SetResourceVersion(strconv.Itoa(version + 1))
		if err := c.objects.Tracker().Update(sliceResource, grant, a.GetNamespace()); err != nil {
			return true, nil, err
		}
		return true, nil, apierrors.NewConflict(sliceResource.GroupResource(), grant.GetName(), nil)
	})
}

// An agent takes over while the last grant of the one before it is under way. There is room for one of two slices.
func TestAConflictThatIsAnotherAgentsGrantGrantsNoRoomTwice(t *testing.T) {
	c := newCluster()
	c.ask(t, 2)
	c.overtaken()
	g := c.granter(toBoth, room("1"))
	for rounds, again := 0, true; again; rounds++ {
		require.Less(t, rounds, 10)
		var err error
		again, err = g.round(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, 1, c.granted(t), "one CPU is there")
}

// Two agents grant in one cluster, as with two discovery servers, whose agents have a Lease each.
func TestTwoAgentsGrantNoRoomTwice(t *testing.T) {
	c := newCluster()
	c.versioned()
	c.ask(t, 100)
	var both sync.WaitGroup
	for range 2 {
		g := c.granter(toBoth, room("60"))
		both.Go(func() {
			for again := true; again && t.Context().Err() == nil; {
				more, err := g.round(t.Context())
				again = more || err != nil
			}
		})
	}
	both.Wait()
	require.Equal(t, 60, c.granted(t), "of 60 CPUs")
}
