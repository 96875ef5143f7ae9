package worker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// A person deletes one of our Nodes. The kubelet registers the Node again, the Node receives its instance id again,
// and CA does not notice.
func TestDeletedNodeComesBackWithItsID(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	object := fleet.ObjectName(name, 1)
	w, err := s.world.Snapshot()
	require.NoError(t, err)
	before := w.Consumer.Nodes[object].UID
	require.NoError(t, s.world.DeleteNode(s.ctx, object))
	require.Eventually(t, func() bool {
		w, err := s.world.Snapshot()
		if err != nil {
			return false
		}
		n := w.Consumer.Nodes[object]
		return n != nil && n.UID != before && n.Spec.ProviderID == fleet.InstanceID(s.spec.ID, name)
	}, waitLimit, waitTick)
	s.allIn(fleet.Ready, 1)
	require.Equal(t, 1, s.snapshot().Target)
}

// A person deletes a slice or a virtual node. The instance is lost and no longer counts in the target size, so that
// CA requests another instance.
func TestDeletedSliceOrVirtualNodeIsLost(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*scene, string) error{
		"slice":        func(s *scene, object string) error { return s.world.DeleteSlice(s.ctx, object) },
		"virtual node": func(s *scene, object string) error { return s.world.DeleteVirtualNode(s.ctx, object) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, 1).work()
			ready := s.grow(2)
			s.allIn(fleet.Ready, 2)
			require.NoError(t, remove(s, fleet.ObjectName(ready.Instances[0].Name, 1)))
			left := s.allIn(fleet.Ready, 1)
			require.Equal(t, ready.Instances[1].Name, left.Instances[0].Name)
			require.Equal(t, 1, left.Target)
			s.release(left.Instances[0].Name)
			s.empty()
		})
	}
}

func TestDeadKubeletIsNotReadyAndNotLost(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1).work()
	name := s.grow(1).Instances[0].Name
	s.allIn(fleet.Ready, 1)
	object := fleet.ObjectName(name, 1)
	require.NoError(t, s.world.KillKubelet(s.ctx, object))
	s.until("not ready", func(snap fleet.Snapshot) bool { return len(snap.Instances) == 1 && snap.Instances[0].NotReady })
	require.Equal(t, fleet.Ready, s.snapshot().Instances[0].Phase)
	require.Equal(t, 1, s.snapshot().Target)
	require.NoError(t, s.world.ReviveKubelet(s.ctx, object))
	s.until("ready again", func(snap fleet.Snapshot) bool {
		return len(snap.Instances) == 1 &&
			!snap.Instances[0].NotReady
	})
}
