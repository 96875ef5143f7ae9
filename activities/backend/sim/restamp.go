package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Restamp puts the instance id back on a Node, see backend.Watcher. A missing one its virtual kubelet registers at once.
func (b *Backend) Restamp(ctx context.Context, a backend.Attempt) error {
	return b.world.Edit(ctx, func(s *State) error {
		name, id := a.ObjectName(), a.InstanceID()
		virtual, node := s.Consumer.Virtuals[name], s.Consumer.Nodes[name]
		switch {
		case virtual == nil || virtual.Deleting != nil || !b.of(virtual.Labels, a) || virtual.Annotations[backend.AnnotationStamp] != id:
			return nil
		case node == nil:
			if s.reregisters(name) {
				s.Consumer.Kubelets[name].Missing = &time.Time{} // long enough
			}
			return nil
		case node.DeletionTimestamp != nil || !b.of(node.Labels, a) || node.Spec.ProviderID == id:
			return nil
		case node.Spec.ProviderID != "":
			return fmt.Errorf("stamp node %s again: it has the providerID %q: %w", name, node.Spec.ProviderID, backend.ErrConflict)
		}
		for other, n := range s.Consumer.Nodes {
			if n.Spec.ProviderID == id {
				return fmt.Errorf("stamp node %s again: node %s has the instance id %s: %w", name, other, id, backend.ErrConflict)
			}
		}
		node.Spec.ProviderID = id
		return nil
	})
}
