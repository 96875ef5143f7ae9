package liqo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The Node of a marked virtual node is missing. Each Restamp changes the virtual node, and this change makes the
// virtual kubelet register the Node again. Restamp does not change a virtual node without the mark.
func TestCallBackMakesKubeletRegisterItsNode(t *testing.T) {
	t.Parallel()
	called := func(c *clusters) string {
		virtual := running()
		require.NoError(t, c.local.Get(t.Context(), keyOf(virtual), virtual))
		return virtual.Annotations[annotationCalled]
	}
	c := newClusters(t, copies([]any{stampedNode()[0]}), nil)
	require.NoError(t, c.Restamp(t.Context(), someAttempt(1)))
	first, err := time.Parse(time.RFC3339, called(c))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), first, time.Minute)

	virtual := running()
	require.NoError(t, c.local.Get(t.Context(), keyOf(virtual), virtual))
	before := virtual.Annotations[annotationCalled]
	require.NoError(t, c.Restamp(t.Context(), someAttempt(1)))
	require.NotEqual(t, before, called(c), "not called again")

	c = newClusters(t, copies([]any{running()}), nil)
	require.NoError(t, c.Restamp(t.Context(), someAttempt(1)))
	require.Empty(t, called(c), "one without mark was called back")
}
