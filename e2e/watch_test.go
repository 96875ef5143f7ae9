package e2e_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// TestWatch is the suite "watch". It covers events of an existing node. Deleted Nodes are registered again with their
// ids, lost nodes are noticed, and dead virtual kubelets do not count as losses.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 23*time.Minute)
	defer cancel()
	s := newStack(ctx, t, "watch", groups, offers)
	offload(ctx, newSteps(t), s.consumer)
	runParts(ctx, t, s, []part{
		{"DeletedNodeComesBack", deletedNodeComesBack},
		{"DeletedVirtualNodeIsLost", func(ctx context.Context, t *testing.T, s *stack) { lost(ctx, t, s, virtualNodes) }},
		{"DeletedSliceIsLost", func(ctx context.Context, t *testing.T, s *stack) { lost(ctx, t, s, resourceSlices) }},
		{"DeadKubeletIsNotReady", deadKubelet},
	})
}

// deletedNodeComesBack deletes the Node with kubectl. The virtual kubelet registers the Node again, and our worker
// sets its providerID again. CA neither releases the Node nor requests another one.
func deletedNodeComesBack(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	ids := r.scaledOut(ctx, 1)
	node, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	r.until(ctx, "pod running", time.Minute,
		func(ctx context.Context) error { return running(ctx, s.consumer, "work", 1, node.Name) })
	require.NoError(t, s.consumer.kube.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{}))
	r.done("node deleted")
	before := node.UID
	r.until(ctx, "node back with its id", 2*time.Minute, func(ctx context.Context) error {
		node, err := s.consumer.node(ctx, ids[0])
		if err == nil && node.UID == before {
			err = fmt.Errorf("node %s is still the old one", node.Name)
		}
		return err
	})
	r.during(ctx, "CA leaves it alone", 15*time.Second, func(ctx context.Context) error {
		if given := s.proxy.Calls(func(c ca.Call) bool {
			return c.Seq > r.since &&
				c.Method == ca.DeleteNodes
		}); len(given) > 0 {
			return fmt.Errorf("CA gave it back: %s", given[0])
		}
		return r.counts(ctx, 1)
	})
	r.until(ctx, "pod running still", time.Minute,
		func(ctx context.Context) error { return running(ctx, s.consumer, "work", 2) })
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// lost deletes an object of a node. The node's pods become pending again, and CA requests another node, perhaps
// before our worker notices the loss. The instance no longer counts towards the target size.
func lost(ctx context.Context, t *testing.T, s *stack, of schema.GroupVersionResource) {
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	old := r.scaledOut(ctx, 1)
	items, err := s.consumer.list(ctx, of)
	require.NoError(t, err)
	require.Len(t, items, 1)
	node, err := s.consumer.node(ctx, old[0])
	require.NoError(t, err)
	r.until(ctx, "pod running", time.Minute,
		func(ctx context.Context) error { return running(ctx, s.consumer, "work", 1, node.Name) })

	r = newRun(t, s)
	require.NoError(t, s.consumer.liqo.Resource(of).Namespace(items[0].GetNamespace()).Delete(ctx, items[0].GetName(),
		metav1.DeleteOptions{}))
	ids := r.scaledOut(ctx, 1)
	require.NotEqual(t, old, ids)
	r.until(ctx, "target lowered", time.Minute, func(ctx context.Context) error { return r.counts(ctx, 1) })
	r.until(ctx, "pods running", time.Minute,
		func(ctx context.Context) error { return running(ctx, s.consumer, "work", 2) })
	r.until(ctx, "lost one gone", 2*time.Minute, func(ctx context.Context) error {
		if _, err := s.consumer.node(ctx, old[0]); err == nil {
			return fmt.Errorf("the node of %s is there", old[0])
		}
		return s.consumer.count(ctx, resourceSlices, 1)
	})
	for _, c := range s.proxy.Calls(func(c ca.Call) bool { return c.Seq > r.since && c.Method == ca.DeleteNodes }) {
		t.Errorf("CA gave something back: %s", c)
	}
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids, old...)
}

// deadKubelet stops a virtual kubelet. The Node is not ready, but still counts, and becomes Ready again later.
func deadKubelet(ctx context.Context, t *testing.T, s *stack) {
	r := newRun(t, s)
	require.NoError(t, deploy(ctx, s.consumer, "work", 2, "800m"))
	ids := r.scaledOut(ctx, 1)
	node, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	revive := strike(ctx, r, syscall.SIGSTOP)
	r.until(ctx, "shown as not ready", 3*time.Minute,
		func(ctx context.Context) error { return r.shown(ctx, ids[0], true) })
	r.during(ctx, "not lost", 10*time.Second, func(ctx context.Context) error { return r.counts(ctx, 1) })
	revive(ctx)
	r.until(ctx, "shown as ready again", 2*time.Minute,
		func(ctx context.Context) error { return r.shown(ctx, ids[0], false) })
	again, err := s.consumer.node(ctx, ids[0])
	require.NoError(t, err)
	require.Equal(t, node.UID, again.UID)
	require.Empty(t, s.proxy.Calls(func(c ca.Call) bool { return c.Seq > r.since && c.Method == ca.DeleteNodes }))
	require.NoError(t, undeploy(ctx, s.consumer, "work"))
	r.scaledIn(ctx, ids)
}

// counts requires that the target size is n.
func (r *run) counts(ctx context.Context, n int) error {
	res, err := r.s.client.NodeGroupTargetSize(ctx, &protos.NodeGroupTargetSizeRequest{Id: group})
	if err == nil && int(res.GetTargetSize()) != n {
		err = fmt.Errorf("target is %d, want %d", res.GetTargetSize(), n)
	}
	return err
}

// shown requires that the phase of an instance is Ready, and that its node is reported as not ready if notReady is
// true, and as ready otherwise.
func (r *run) shown(ctx context.Context, id string, notReady bool) error {
	snapshot, err := r.s.groupSnapshot(ctx)
	if err != nil {
		return err
	}
	for _, i := range snapshot.Instances {
		if i.ID(group) == id {
			if i.Phase != fleet.Ready || i.NotReady != notReady {
				return fmt.Errorf("instance %s is %s, not ready: %v", i.Name, i.Phase, i.NotReady)
			}
			return nil
		}
	}
	return fmt.Errorf("instance %s is not listed", id)
}
