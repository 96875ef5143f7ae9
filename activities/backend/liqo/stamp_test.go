package liqo

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"

	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// earlier returns the virtual node and the Node of the instance's previous attempt.
func earlier(marked, stamped bool) (*offloadingv1beta1.VirtualNode, *corev1.Node) {
	virtual := &offloadingv1beta1.VirtualNode{
		ObjectMeta: named("liqo-tenant-provider2", "lca-g-abc-1-0", labelsOf("0"), of("provider2")),
	}
	node := readyNode("lca-g-abc-1-0", "0")
	if marked {
		virtual.Annotations = map[string]string{backend.AnnotationStamp: someAttempt(0).InstanceID()}
	}
	if stamped {
		node.Spec.ProviderID = someAttempt(0).InstanceID()
	}
	return virtual, node
}

// Two Nodes must never carry the same instance id. Join therefore stamps its Node last.
func TestJoinStampsLast(t *testing.T) {
	t.Parallel()
	plain, unstamped := earlier(false, false)
	marked, stamped := earlier(true, true)
	removed := held(marked.DeepCopy())
	const carries = "Node lca-g-abc-1-0 of another attempt still carries"
	const isMarked = "VirtualNode lca-g-abc-1-0 of another attempt is still marked"
	for name, test := range map[string]struct {
		there []client.Object
		waits string // the object for which Join waits
		want  error
	}{
		"an earlier attempt that never came so far": {there: []client.Object{plain, unstamped}},
		"an earlier attempt that is stamped":        {there: []client.Object{marked, stamped}, want: backend.ErrConflict},
		"an earlier attempt that is drained":        {there: []client.Object{plain, stamped}, waits: carries},
		"a Node that has outlived all else":         {there: []client.Object{stamped}, waits: carries},
		"a virtual node that is being deleted":      {there: []client.Object{removed, stamped}, waits: carries},
		"a mark without a stamp":                    {there: []client.Object{marked, unstamped}, waits: isMarked},
		"a mark without a Node":                     {there: []client.Object{marked}, waits: isMarked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var there []client.Object
				for _, object := range test.there {
					there = append(there, object.DeepCopyObject().(client.Object))
				}
				c := newClusters(t, joinable(there...), nil)
				ctx := prompt(t)
				if test.waits != "" {
					ctx = soon(t)
				}
				_, err := c.Join(ctx, spec(), nil)
				found, listErr := c.List(t.Context(), backend.Scope{})
				require.NoError(t, listErr)
				ours := found[len(found)-1]
				if test.waits == "" && test.want == nil {
					require.NoError(t, err)
					require.True(t, ours.Marked && ours.Stamped)
					return
				}
				require.False(t, ours.Marked || ours.Stamped, "%+v", ours)
				var stage *backend.StageError
				require.ErrorAs(t, err, &stage)
				require.Equal(t, backend.StageStamp, stage.Stage)
				if test.want != nil {
					require.ErrorIs(t, err, test.want)
					require.Contains(t, stage.Message, "Node lca-g-abc-1-0 of another attempt is the instance")
					return
				}
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Contains(t, stage.Message, test.waits)
			})
		})
	}
}

// A Join of an abandoned attempt still runs and marks its virtual node concurrently. The newer Join finds this mark
// and does not stamp its Node.
func TestConcurrentMarkOfAnotherAttemptPreventsTheStamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		virtual, _ := earlier(false, false)
		c := newClusters(t, joinable(virtual), nil)
		c.local = interceptor.NewClient(c.watch, interceptor.Funcs{
			Patch: func(
				ctx context.Context, w client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption,
			) error {
				if mark, _ := earlier(true, false); o.GetName() == "lca-g-abc-1-1" && virtual.Annotations == nil {
					virtual.Annotations = mark.Annotations
					require.NoError(t, w.Update(ctx, virtual))
				}
				return w.Patch(ctx, o, patch, opts...)
			},
		})
		_, err := c.Join(soon(t), spec(), nil)
		require.ErrorContains(t, err, "VirtualNode lca-g-abc-1-0 of another attempt is still marked")
		found, err := c.List(t.Context(), backend.Scope{})
		require.NoError(t, err)
		require.False(t, found[1].Stamped)
	})
}

// After Join has read a Node, the Node is deleted and registered again. The stamp fails, because the API server
// refuses the old UID.
func TestStampFailsWhenTheNodeWasReplaced(t *testing.T) {
	t.Parallel()
	read, now := readyNode("lca-g-abc-1-1", "1"), readyNode("lca-g-abc-1-1", "1")
	read.UID, now.UID = "read", "now"
	c := newClusters(t, []client.Object{now}, nil)
	a := c.attempt(someAttempt(1))
	a.local = interceptor.NewClient(c.watch, interceptor.Funcs{Patch: func(ctx context.Context, w client.WithWatch,
		o client.Object, patch client.Patch, opts ...client.PatchOption) error {
		data, err := patch.Data(o)
		require.NoError(t, err)
		var sent corev1.Node
		require.NoError(t, json.Unmarshal(data, &sent))
		if sent.UID != "" && sent.UID != now.UID {
			return apierrors.NewConflict(corev1.Resource("nodes"), o.GetName(), errors.New("the UID differs"))
		}
		return w.Patch(ctx, o, patch, opts...)
	}})
	require.True(t, apierrors.IsConflict(a.stamp(t.Context(), read)))
	require.NoError(t, c.local.Get(t.Context(), keyOf(now), now))
	require.Empty(t, now.Spec.ProviderID)
}
