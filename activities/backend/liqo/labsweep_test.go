package liqo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// forget implements World.Forget. It makes the provider unreachable and removes the consumer's tenant namespace with
// all finalizers, as `liqoctl unpeer --force` does.
func (l *lab) forget(ctx context.Context, p fleet.Provider) error {
	undo, err := l.cut(ctx, p)
	if err != nil {
		return err
	}
	err = l.clusters[consumer].wipe(ctx, "liqo-tenant-"+p.ID)
	if undone := undo(ctx); err == nil {
		err = undone
	}
	return err
}

// wipe removes a tenant namespace with all of its objects, whether or not they have finalizers. It first deletes the
// virtual nodes and waits for their finalizers. It then removes the other objects together with their finalizers.
func (c *cluster) wipe(ctx context.Context, namespace string) error {
	kinds := []schema.GroupVersionResource{offloading("virtualnodes"), authentication("identities"),
		{Version: "v1", Resource: "secrets"}, authentication("renews"), authentication("resourceslices"),
		offloading("namespacemaps")}
	for n, kind := range kinds {
		objects := c.any.Resource(kind).Namespace(namespace)
		err := poll(ctx, func(ctx context.Context) (bool, error) {
			list, err := objects.List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) == 0 {
				return err == nil, err
			}
			for i := range list.Items {
				name := list.Items[i].GetName()
				if err := ignoreNotFound(objects.Delete(ctx, name, metav1.DeleteOptions{})); err != nil {
					return false, err
				}
				if n == 0 {
					continue
				}
				_, err := objects.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
					metav1.PatchOptions{})
				if ignoreNotFound(err) != nil {
					return false, err
				}
			}
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return c.removeNamespace(ctx, namespace)
}

// TestLabNetworkLeft removes a network's objects from the consumer by force. Leftovers finds the network's objects on
// the provider. The removal of the peering then removes them.
func TestLabNetworkLeft(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(1, `{"serviceType":"NodePort"}`)
	l.establish(t, p)
	require.NoError(t, l.forget(within(t, 2*time.Minute), p))
	left, err := l.b.Leftovers(within(t, time.Minute), p)
	require.NoError(t, err)
	require.Len(t, left, 1, "%+v", left)
	require.True(t, left[0].OfPeering())
	require.False(t, left[0].Foreign)
	for _, what := range []string{"Tenant ", "Secret ", "Configuration ", "GatewayServer ", "PublicKey "} {
		require.Contains(t, left[0].Object, what)
	}
	require.Equal(t, l.rights == nil, strings.Contains(left[0].Object, "Namespace "), "an account's provider has made it")
	l.remove(t, p)
}

// TestLabNetworkNoRoom uses a consumer without free capacity for its gateway. Establish reports the cause within half
// a minute and does not blame the provider. When the gateway fits again, Establish completes the same peering.
func TestLabNetworkNoRoom(t *testing.T) {
	l := theNetLab(t)
	p := l.offer(2, `{"serviceType":"NodePort"}`)
	room := func(unschedulable string) {
		_, err := l.clusters[consumer].kube.CoreV1().Nodes().Patch(context.Background(), "plain-0", types.MergePatchType,
			[]byte(`{"spec":{"unschedulable":`+unschedulable+`}}`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	t.Cleanup(func() { room("false") })
	room("true")
	began := time.Now()
	var err error
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		err = l.b.Establish(ctx, p, nil)
		return errors.Is(err, backend.ErrNoRoom)
	}, 3*time.Minute, time.Millisecond, "a pass that lacks room says so")
	t.Logf("STEP %s: named after %.1f s: %v", t.Name(), time.Since(began).Seconds(), err)
	require.ErrorContains(t, err, fleet.ConditionNoRoomForGateway)
	require.ErrorContains(t, err, corev1.PodReasonUnschedulable)
	l.requireSeen(t, p, func(o backend.Observation) bool { return o.Fault.Condition == fleet.ConditionNoRoomForGateway })

	room("false")
	l.establish(t, p)
	l.requireSeen(t, p, func(o backend.Observation) bool { return o.Fault.Condition == "" })
	l.remove(t, p)
}
