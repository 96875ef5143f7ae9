package liqo

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// asked records the requests of a backend to the consumer in their order, for example "create VirtualNode".
type asked struct {
	mu  sync.Mutex
	all []string
}

func (a *asked) record(verb string, object any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kind := reflect.TypeOf(object).Elem().Name()
	a.all = append(a.all, verb+" "+strings.TrimSuffix(kind, "List"))
}

// since returns the requests from the n-th on.
func (a *asked) since(n int) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all[n:])
}

// of returns a client that records every request to the cluster. It passes each created object to the function made.
func (a *asked) of(cluster client.WithWatch, made func(client.Object)) client.Client {
	return interceptor.NewClient(cluster, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, k client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			a.record("get", o)
			return w.Get(ctx, k, o, opts...)
		},
		List: func(ctx context.Context, w client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			a.record("list", l)
			return w.List(ctx, l, opts...)
		},
		Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			a.record("create", o)
			err := w.Create(ctx, o, opts...)
			made(o)
			return err
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			a.record("patch", o)
			return w.Patch(ctx, o, p, opts...)
		},
	})
}

// inTime simulates how Liqo and Kubernetes react to the objects of a Join, about as fast as on an idle machine. It
// wakes waiters as Watch does. At the end it calls the function started, which makes the Node accept pods. At this
// time the Node has already been Ready for a while.
func inTime(t *testing.T, c *clusters, started func(*corev1.Node) error) (made func(client.Object)) {
	in := func(after time.Duration, do func() error) {
		time.AfterFunc(after*time.Millisecond, func() {
			if err := do(); err != nil {
				t.Error(err)
			}
			c.changes.notify("lca-g-abc-1-1")
		})
	}
	touched := func() { // simulates changes for which Join does not wait
		for _, after := range []time.Duration{5, 20, 40} {
			in(after, func() error { return nil })
		}
	}
	slice, virtual, node := accepted("2"), running(), newNode()
	return func(o client.Object) {
		switch o.(type) {
		case *authv1beta1.ResourceSlice:
			touched()
			in(90, func() error {
				status := slice.Status
				err := c.watch.Get(t.Context(), keyOf(slice), slice)
				slice.Status, slice.Status.NodeLabels = status, nil
				return errors.Join(err, c.watch.Update(t.Context(), slice))
			})
			in(120, func() error { return c.watch.Create(t.Context(), sliceIdentity()) })
		case *offloadingv1beta1.VirtualNode:
			touched()
			in(60, func() error {
				status := virtual.Status
				err := c.watch.Get(t.Context(), keyOf(virtual), virtual)
				virtual.Status = status
				return errors.Join(err, c.watch.Update(t.Context(), virtual))
			})
			in(600, func() error { return c.watch.Create(t.Context(), node) })
			in(800, func() error {
				return errors.Join(c.watch.Get(t.Context(), keyOf(node), node), started(node))
			})
		}
	}
}

// newNode returns the attempt's Node as its kubelet registers it: it is Ready and has the taint of every new Node.
func newNode() *corev1.Node {
	node := readyNode("lca-g-abc-1-1", "1")
	node.UID, node.Labels["color"] = "1", "ours"
	node.Spec.Taints = append(spec().Taints, corev1.Taint{Key: corev1.TaintNodeNotReady,
		Effect: corev1.TaintEffectNoSchedule})
	return node
}

// joining joins one more node on a provider with a peering. It returns the requests of the Join to the consumer.
func joining(t *testing.T, started func(*clusters, *asked, *corev1.Node) error) *asked {
	c, a := newClusters(t, peered(), nil), &asked{}
	c.graces = defaultGraces()
	defer c.changes.register()()
	c.local = a.of(c.watch, inTime(t, c, func(node *corev1.Node) error { return started(c, a, node) }))
	_, err := c.Join(prompt(t), spec(), nil)
	require.NoError(t, err)
	var node corev1.Node
	require.NoError(t, c.watch.Get(t.Context(), keyOf(newNode()), &node))
	require.Equal(t, someAttempt(1).InstanceID(), node.Spec.ProviderID)
	return a
}

// Pending pods wait while Join sends its requests, and the requests also take CPU from Liqo. So Join must send few
// requests. It sends all requests except the last three before Kubernetes removes its taint from the Node.
func TestJoinSendsFewRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before, id := 0, ""
		a := joining(t, func(c *clusters, a *asked, node *corev1.Node) error {
			before, id = len(a.since(0)), node.Spec.ProviderID
			node.Spec.Taints = spec().Taints
			return c.watch.Update(t.Context(), node)
		})
		require.Empty(t, id, "CA could take it for full yet")
		require.ElementsMatch(t, []string{"list VirtualNode", "get Node", "patch Node"}, a.since(before), "then it stamps")
		require.Equal(t, []string{"patch VirtualNode", "list VirtualNode", "list Node"}, a.since(before - 3)[:3],
			"it looks for other attempts after the mark")
		require.Contains(t, a.since(0)[:before-3], "list Node", "and before it, while the virtual kubelet starts")
		require.LessOrEqual(t, before, 32, "%v", a.all)
	})
}

// The Node is replaced while Kubernetes removes its taint. Join waits for the new Node and stamps it.
func TestJoinStampsAReplacedNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		joining(t, func(c *clusters, _ *asked, node *corev1.Node) error {
			again := newNode()
			again.UID, again.Spec.Taints = "2", spec().Taints
			return errors.Join(c.watch.Delete(t.Context(), node), c.watch.Create(t.Context(), again))
		})
	})
}

// An earlier Join has given up, but its request still creates a virtual node between two checks of this Join. This Join
// adopts the virtual node.
func TestJoinAdoptsALateVirtualNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slice := accepted("3")
		delete(slice.Status.NodeLabels, "color")
		c := newClusters(t, peered(slice, sliceIdentity()), nil)
		c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
			Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				require.NoError(t, w.Create(ctx, running()))
				return w.Create(ctx, o, opts...)
			},
		})
		_, err := c.Join(soon(t), spec(), nil)
		var stage *backend.StageError
		require.ErrorAs(t, err, &stage)
		require.Equal(t, backend.StageNode, stage.Stage)
	})
}

// A slice is created between two checks of Join, for example by another worker that still runs the step. Join adopts
// this slice.
func TestJoinAdoptsALateSlice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClusters(t, peered(), nil)
		c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
			Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				require.NoError(t, w.Create(ctx, o.DeepCopyObject().(client.Object), opts...))
				return w.Create(ctx, o, opts...)
			},
		})
		_, err := c.Join(soon(t), spec(), nil)
		require.NotErrorIs(t, err, backend.ErrConflict)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A worker's heartbeat was lost, and its Join continues while another worker undoes the attempt. The Join does not make
// removed objects again.
func TestJoinDoesNotRestoreRemovedObjects(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			slice := accepted("3")
			delete(slice.Status.NodeLabels, "color")
			if !answered {
				slice.Status = authv1beta1.ResourceSliceStatus{}
			}
			c := newClusters(t, peered(slice), nil)
			time.AfterFunc(2*time.Second, func() { require.NoError(t, c.watch.Delete(t.Context(), slice)) })
			_, err := c.Join(soon(t), spec(), nil)
			require.ErrorIs(t, err, backend.ErrConflict)
			require.False(t, exists(t, c.watch, slice))
		})
	}
}
