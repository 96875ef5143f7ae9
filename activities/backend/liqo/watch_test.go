package liqo

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// beginWatch runs Watch until the context ends. In the fake cluster, a watch receives only changes after its start. A
// change between the list and the start of the watch is lost. The function begun therefore waits until all watches
// have started.
func (c *clusters) beginWatch(ctx context.Context, t *testing.T) (told chan fleet.Found, done chan error, begun func()) {
	t.Helper()
	var watches atomic.Int32
	c.watch = interceptor.NewClient(c.watch, interceptor.Funcs{
		Watch: func(ctx context.Context, w client.WithWatch, list client.ObjectList,
			opts ...client.ListOption) (watch.Interface, error) {
			defer watches.Add(1)
			return w.Watch(ctx, list, opts...)
		},
	})
	told, done = make(chan fleet.Found, 100), make(chan error, 1)
	go func() { done <- c.Watch(ctx, func(f fleet.Found) { told <- f }) }()
	return told, done, func() {
		t.Helper()
		require.Eventually(t, func() bool { return watches.Load() == 4 }, 2*time.Minute, time.Millisecond)
	}
}

func TestWatchReportsOurNodes(t *testing.T) {
	t.Parallel()
	theirs := readyNode("lca-g-abc-1-3", "3")
	theirs.Annotations[backend.LabelHub] = "other"
	c := newClusters(t, append(stampedNode(), readyNode("not-by-its-tags", "7"), theirs), nil)
	ctx, cancel := context.WithCancel(t.Context())
	told, done, begun := c.beginWatch(ctx, t)
	next := func() fleet.Found {
		select {
		case f := <-told:
			return f
		case <-time.After(30 * time.Second):
			require.FailNow(t, "nothing was reported")
			return fleet.Found{}
		}
	}
	first := next()
	found, err := c.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.Equal(t, found, []fleet.Found{first}, "the start tells all that List lists, and nothing else")

	begun()
	require.NoError(t, c.local.Delete(t.Context(), readyNode("lca-g-abc-1-1", "1")))
	f := next()
	require.True(t, f.Slice && f.Virtual && !f.Node, "%+v", f)
	require.NoError(t, c.local.Delete(t.Context(), running()))
	require.NoError(t, c.local.Delete(t.Context(), accepted("2")))
	for f = next(); f.Virtual || f.Slice; f = next() {
	}
	require.Equal(t, fleet.Found{Attempt: f.Attempt}, f, "its end is reported")
	require.Equal(t, first.Attempt.ObjectName(), f.Attempt.ObjectName())

	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Empty(t, told, "its end is reported once")
}

// Several reads can find a Node, and each read compares the Node with its booking. List and Watch report the same
// differences.
func TestNodeIsComparedWithItsBooking(t *testing.T) {
	t.Parallel()
	booking, err := json.Marshal(fleet.Booking{Spec: fleet.InstanceSpec{ID: "g", Shape: shape("3")}})
	require.NoError(t, err)
	objects := stampedNode()
	objects[0].SetAnnotations(with(objects[0].GetAnnotations(),
		map[string]string{backend.AnnotationBooking: string(booking)}))
	c := newClusters(t, objects, nil)
	found, err := c.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.Contains(t, found[0].Differs, "allocatable cpu is 2 instead of 3")

	ctx, cancel := context.WithCancel(t.Context())
	told, done := make(chan fleet.Found, 100), make(chan error, 1)
	go func() { done <- c.Watch(ctx, func(f fleet.Found) { told <- f }) }()
	select {
	case f := <-told:
		require.Equal(t, found[0], f)
	case <-time.After(30 * time.Second):
		require.FailNow(t, "nothing was reported")
	}
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
}
