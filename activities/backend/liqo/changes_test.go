package liqo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// A wait repeats its check until the check succeeds, and pauses between two checks. A change of the object ends the
// pause.
func TestChangeEndsThePauseOfAWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var all changes
		changed, stop := all.follow("lca-g-abc-1-1")
		began, looks := time.Now(), 0
		err := (&waiter{changed: changed}).until(t.Context(), backend.StageNode, func(context.Context) (bool, string, error) {
			looks++
			all.notify("lca-g-abc-1-1")
			return looks > 20, "", nil
		})
		require.NoError(t, err)
		require.Zero(t, time.Since(began), "no pause was taken")

		all.notify("lca-g-abc-1-1")
		all.notify("lca-g-abc-1-1") // does not block
		require.Len(t, changed, 1)
		<-changed
		all.notify("lca-g-abc-1-11")
		require.Empty(t, changed, "another object's change")
		stop()
		all.notify("lca-g-abc-1-1")
		require.Empty(t, changed, "there is no follower")
	})
}

// A Join pauses between two polls. A change of any object that the Join waits for ends this pause.
func TestWatchWakesTheJoin(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]client.Object{
		"slice": accepted("2"), "kubeconfig": sliceIdentity(), "virtual node": running(),
		"Node": readyNode("lca-g-abc-1-1", "1"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClusters(t, nil, nil)
			ctx, cancel := context.WithCancel(t.Context())
			told, done, begun := c.beginWatch(ctx, t)
			begun()
			changed, stop := c.changes.follow("lca-g-abc-1-1")
			defer stop()
			require.NoError(t, c.local.Create(t.Context(), object))
			select {
			case <-changed:
			case <-time.After(2 * time.Minute):
				require.FailNow(t, "no waiter is woken")
			}
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
			if _, ok := object.(*authv1beta1.Identity); ok {
				require.Empty(t, told, "an Identity is no part of what is found")
			}
		})
	}
}
