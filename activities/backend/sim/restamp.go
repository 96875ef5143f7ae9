package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Restamp sets the instance id again on a Node, see backend.Watcher. It makes the virtual kubelet of a missing Node
// register the Node without a further delay.
func (b *Backend) Restamp(ctx context.Context, a fleet.Attempt) error {
	_, err := b.world.edit(ctx, attemptKeys(a), func(s *State) error {
		return b.restamp(s, a)
	})
	return err
}

func (b *Backend) restamp(s *State, a fleet.Attempt) error {
	name, id := a.ObjectName(), a.InstanceID()
	node := s.Consumer.Nodes[name]
	switch {
	case !b.marked(s.Consumer.Virtuals[name], a):
		return nil
	case node == nil:
		if s.reregisters(name) {
			s.Consumer.Kubelets[name].Missing = &time.Time{} // longer ago than any delay
		}
		return nil
	case node.DeletionTimestamp != nil || !b.of(node.Annotations, a) || node.Spec.ProviderID == id:
		return nil
	case node.Spec.ProviderID != "":
		return fmt.Errorf("stamp node %s again: it has the providerID %q: %w", name, node.Spec.ProviderID,
			backend.ErrConflict)
	}
	for other, n := range s.Consumer.Nodes {
		if n.Spec.ProviderID == id {
			return fmt.Errorf("stamp node %s again: node %s has the instance id %s: %w", name, other, id, backend.ErrConflict)
		}
	}
	node.Spec.ProviderID = id
	return nil
}

// marked reports whether the attempt's virtual node exists, carries the mark and is not being removed.
func (b *Backend) marked(virtual *Object, a fleet.Attempt) bool {
	return virtual != nil && virtual.Deleting == nil && b.of(virtual.Labels, a) &&
		virtual.Annotations[backend.AnnotationStamp] == a.InstanceID()
}
