package sim

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Return removes the attempt's node and slice on the consumer and the provider, see backend.Nodes.
func (b *Backend) Return(ctx context.Context, a fleet.Attempt, progress backend.Progress) error {
	return b.drive(ctx, attemptKeys(a), backend.StageNodeGone, progress, func(s *State, now time.Time) (*waiting, error) {
		if w := b.removeNode(s, now, a); w != nil {
			return w, nil
		}
		return b.removeSlice(s, now, a), nil
	})
}

// removeNode removes the mark, and then the virtual node and the Node with its pods. It does not need the provider.
func (b *Backend) removeNode(s *State, now time.Time, a fleet.Attempt) *waiting {
	name := a.ObjectName()
	virtual, node := b.nodeObjects(s, a)
	if virtual == nil && node == nil {
		return nil
	}
	var since time.Time
	if virtual != nil {
		delete(virtual.Annotations, backend.AnnotationStamp)
		virtual.delete(now)
		since = *virtual.Deleting
	}
	if node != nil && node.DeletionTimestamp == nil {
		node.Spec.Unschedulable = true
		deleteNode(node, now)
		// The Node is terminating for at least one poll, even without a delay.
		return &waiting{stage: backend.StageNodeGone, message: fmt.Sprintf("node %s is terminating", name), due: now}
	}
	if since.IsZero() {
		since = node.DeletionTimestamp.Time
	}
	p := s.providerOr(a.Provider.ID)
	if w := p.waitFor(backend.StageNodeGone, since.Add(s.Delays.Leave/2), now); w != nil {
		return w
	}
	if virtual != nil {
		s.deleteVirtualNode(name)
	}
	if node != nil {
		s.deleteNode(name)
	}
	return nil
}

// nodeObjects returns the attempt's virtual node and Node. It returns nil for an object of another attempt.
func (b *Backend) nodeObjects(s *State, a fleet.Attempt) (virtual *Object, node *corev1.Node) {
	name := a.ObjectName()
	if v := s.Consumer.Virtuals[name]; v != nil && b.of(v.Labels, a) {
		virtual = v
	}
	if n := s.Consumer.Nodes[name]; n != nil && b.of(n.Annotations, a) {
		node = n
	}
	return virtual, node
}

// removeSlice removes the slice on the consumer and the provider. It also removes a slice that exists only on the
// provider.
func (b *Backend) removeSlice(s *State, now time.Time, a fleet.Attempt) *waiting {
	name, id := a.ObjectName(), a.Provider.ID
	slice := s.Consumer.Slices[name]
	if slice != nil && !b.of(slice.Labels, a) {
		slice = nil
	}
	if slice != nil {
		id = slice.Provider
		slice.delete(now)
	} else if s.Consumer.Peerings[id] == nil {
		return nil // if both are missing, the provider has no object of the attempt
	}
	p := s.providerOr(id)
	if p.Knobs.Unreachable {
		return &waiting{stage: backend.StageSliceGone, message: fmt.Sprintf("provider %s does not answer", id)}
	}
	if slice != nil {
		if w := p.waitFor(backend.StageSliceGone, slice.Deleting.Add(s.Delays.Leave/2), now); w != nil {
			return w
		}
		delete(s.Consumer.Slices, name)
	}
	key := remoteKey(id, name)
	if remote := s.RemoteSlices[key]; remote != nil && b.of(remote.Labels, a) {
		delete(s.RemoteSlices, key)
	}
	return nil
}

// providerOr returns the provider. If the provider is not in the world, it returns a provider that is unreachable.
func (s *State) providerOr(id string) *Provider {
	if p := s.Providers[id]; p != nil {
		return p
	}
	return &Provider{ID: id, Knobs: Knobs{Unreachable: true}}
}
