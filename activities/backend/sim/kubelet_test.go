package sim

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// joined returns a world with one node, its backend and its spec.
func joined(t *testing.T, delays Delays) (*World, *Backend, backend.NodeSpec) {
	t.Helper()
	w := open(t, filepath.Join(t.TempDir(), "world.json"), delays)
	p, b := provider(t, w, "one"), New(w, testOptions)
	require.NoError(t, b.Establish(bounded(t), p, nil))
	spec := nodeSpec("group-a-1", 1, p)
	_, err := b.Join(bounded(t), spec, nil)
	require.NoError(t, err)
	return w, b, spec
}

func (b *Backend) only(t *testing.T) fleet.Found {
	t.Helper()
	found, err := b.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// A Node was deleted. A read before the end of the delay Delays.Register does not register the Node again. The first
// read after the delay registers it.
func TestKubeletRegistersAgain(t *testing.T) {
	w, b, spec := joined(t, Delays{Register: time.Hour})
	require.NoError(t, w.DeleteNode(t.Context(), spec.Attempt.ObjectName()))
	require.False(t, b.only(t).Node)
	require.NoError(t, w.SetDelays(t.Context(), Delays{}))
	f := b.only(t)
	require.True(t, f.Node && f.Ready && f.Marked && !f.Stamped, "%+v", f)
	require.NoError(t, b.Restamp(t.Context(), spec.Attempt))
	require.True(t, b.only(t).Stamped)

	// Restamp does not wait for the delay.
	require.NoError(t, w.SetDelays(t.Context(), Delays{Register: time.Hour}))
	require.NoError(t, w.DeleteNode(t.Context(), spec.Attempt.ObjectName()))
	require.False(t, b.only(t).Node)
	require.NoError(t, b.Restamp(t.Context(), spec.Attempt))
	require.True(t, b.only(t).Node)
	require.False(t, b.only(t).Stamped)
	require.NoError(t, w.SetDelays(t.Context(), Delays{}))

	// If a Node is removed without DeleteNode, the delay begins when a read notices that the Node is missing.
	require.NoError(t, w.Edit(t.Context(), func(s *State) error {
		s.deleteNode(spec.Attempt.ObjectName())
		return nil
	}))
	require.True(t, b.only(t).Node)
}

// A kubelet is dead, or its provider is unreachable. The kubelet then registers no Node, and an existing Node is
// Unknown. If both faults exist, the Node recovers only after both have ended.
func TestNodeOfADeadKubeletIsUnknown(t *testing.T) {
	w, b, spec := joined(t, Delays{})
	name := spec.Attempt.ObjectName()
	require.NoError(t, w.KillKubelet(t.Context(), name))
	f := b.only(t)
	require.True(t, f.Slice && f.Virtual && f.Marked && f.Node && f.Stamped && !f.Ready, "%+v", f)
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{Unreachable: true}))
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{}))
	require.False(t, b.only(t).Ready, "the kubelet is still dead")
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{Unreachable: true}))
	require.NoError(t, w.ReviveKubelet(t.Context(), name))
	require.False(t, b.only(t).Ready, "the provider is still away")
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{}))
	require.True(t, b.only(t).Ready)

	require.NoError(t, w.KillKubelet(t.Context(), name))
	require.NoError(t, w.DeleteNode(t.Context(), name))
	require.False(t, b.only(t).Node)
	require.NoError(t, w.ReviveKubelet(t.Context(), name))
	require.True(t, b.only(t).Node)
	require.Error(t, w.KillKubelet(t.Context(), "nobody"))
}

// A slice is deleted while its provider is unreachable. The slice stays terminating, and its node stays. A Return
// removes both.
func TestDeleteSliceWhileUnreachable(t *testing.T) {
	w, b, spec := joined(t, Delays{})
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{Unreachable: true}))
	require.NoError(t, w.DeleteSlice(t.Context(), spec.Attempt.ObjectName()))
	f := b.only(t)
	require.True(t, f.Slice && f.Virtual && f.Marked && f.Node && f.Terminating, "%+v", f)
	require.NoError(t, w.SetKnobs(t.Context(), "one", Knobs{}))
	require.NoError(t, b.Return(bounded(t), spec.Attempt, nil))
	c := counts(t, w)
	require.Zero(t, c.Slices+c.RemoteSlices+c.VirtualNodes+c.Nodes)
	s, err := w.Snapshot()
	require.NoError(t, err)
	require.Empty(t, s.Consumer.Kubelets)
}

// Two attempts of an instance are marked. Still only one Node carries the instance id.
func TestTwoNodesNeverCarryOneID(t *testing.T) {
	w, b, spec := joined(t, Delays{Register: time.Hour})
	first := spec.Attempt
	require.NoError(t, w.DeleteNode(t.Context(), first.ObjectName()))
	spec.Attempt.Number = 2
	const waits = "another attempt is still marked"
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	_, err := b.Join(ctx, spec, func(_ backend.Stage, message string) {
		if strings.Contains(message, waits) {
			cancel()
		}
	})
	require.ErrorContains(t, err, waits, "its kubelet will bring the Node back")
	mark := func(id string) {
		require.NoError(t, w.Edit(t.Context(), func(s *State) error {
			s.Consumer.Virtuals[first.ObjectName()].Annotations = map[string]string{backend.AnnotationStamp: id}
			return nil
		}))
	}
	mark("")
	_, err = b.Join(bounded(t), spec, nil)
	require.NoError(t, err)
	mark(first.InstanceID())
	require.NoError(t, w.SetDelays(t.Context(), Delays{}))
	found, err := b.List(t.Context(), backend.Scope{})
	require.NoError(t, err)
	require.True(t, found[0].Node && found[0].Marked && !found[0].Stamped)
	require.ErrorIs(t, b.Restamp(t.Context(), first), backend.ErrConflict)
	require.Equal(t, 1, counts(t, w).Stamped)
}

// A changed peering may have other credentials. Watch then examines the reported attempts on its provider, and no other
// attempts.
func TestWatchExaminesTheAttemptsOfAChangedPeering(t *testing.T) {
	w, b, spec := joined(t, Delays{})
	reported := map[string]reportedAttempt{}
	_, version, err := b.news(t.Context(), 0, reported, true)
	require.NoError(t, err)
	touched := func(id string) (names []string) {
		require.NoError(t, b.Establish(bounded(t), provider(t, w, id), nil))
		require.NoError(t, w.Edit(t.Context(), func(s *State) error {
			s.Consumer.Peerings[id].Annotations[backend.AnnotationCredentials] = fmt.Sprintf(`{"kubeconfigFile":"%d"}`, version)
			return nil
		}))
		now, err := w.view(func(*State) { names = w.touchedSince(version, reported) })
		require.NoError(t, err)
		version = now
		return names
	}
	require.NotNil(t, touched("two"))
	require.Empty(t, touched("two"), "the provider two has no attempt")
	require.Equal(t, []string{spec.Attempt.ObjectName()}, touched("one"))
}

// Watch cannot read the world for some time. It does not end, and afterwards it reports every attempt again.
func TestWatchContinuesAfterAGap(t *testing.T) {
	w, b, spec := joined(t, Delays{})
	ctx, cancel := context.WithCancelCause(bounded(t))
	told, done := make(chan fleet.Found, 100), make(chan error, 1)
	go func() { done <- b.Watch(ctx, func(f fleet.Found) { told <- f }) }()
	before := <-told
	hidden := false
	require.Eventually(t, func() bool { // the world is hidden for a few reads, then visible for a few
		from, to := w.path, w.path+".hidden"
		if hidden {
			from, to = to, from
		}
		if os.Rename(from, to) != nil {
			return false
		}
		hidden = !hidden
		return len(told) > 0 && !hidden
	}, time.Minute, 20*time.Millisecond)
	require.Equal(t, before, <-told)
	require.Equal(t, spec.Attempt.ObjectName(), before.Attempt.ObjectName())
	cancel(context.Canceled)
	require.ErrorIs(t, <-done, context.Canceled)
}
