package sim

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// conflict returns ErrConflict when an object that does not belong to the attempt has the attempt's name.
func (b *Backend) conflict(s *State, a fleet.Attempt) error {
	name := a.ObjectName()
	taken := func(kind string) error {
		return fmt.Errorf("join %s: a %s of this name exists and is not ours: %w", name, kind, backend.ErrConflict)
	}
	if o := s.Consumer.Slices[name]; o != nil && !b.of(o.Labels, a) {
		return taken("slice")
	}
	if o := s.Consumer.Virtuals[name]; o != nil && !b.of(o.Labels, a) {
		return taken("virtual node")
	}
	if o := s.Consumer.Nodes[name]; o != nil && !b.of(o.Annotations, a) {
		return taken("node")
	}
	return nil
}

// isTerminating reports whether any of the attempt's objects is terminating.
func (b *Backend) isTerminating(s *State, a fleet.Attempt) bool {
	name := a.ObjectName()
	slice, virtual, node := s.Consumer.Slices[name], s.Consumer.Virtuals[name], s.Consumer.Nodes[name]
	return slice != nil && slice.Deleting != nil ||
		virtual != nil && virtual.Deleting != nil ||
		node != nil && node.DeletionTimestamp != nil
}

// ensureSlice makes the slice on the consumer if it is missing.
func (b *Backend) ensureSlice(s *State, p *Provider, spec backend.NodeSpec, now time.Time) *Slice {
	name := spec.Attempt.ObjectName()
	if s.Consumer.Slices[name] == nil {
		s.Consumer.Slices[name] = &Slice{Object: newObject(p.ID, b.attemptLabels(spec.Attempt), nil, now),
			Asked: spec.Shape.DeepCopy()}
	}
	return s.Consumer.Slices[name]
}

// grant makes the provider's copy of the slice if it is missing. It grants the requested amounts. If less is free, it
// grants only the free capacity, and returns ErrShort. If the spec has a class, the provider's controller grants the
// whole request or nothing. If it grants nothing, grant returns ErrFull.
func (b *Backend) grant(s *State, p *Provider, spec backend.NodeSpec, now time.Time) error {
	key := remoteKey(p.ID, spec.Attempt.ObjectName())
	remote := s.RemoteSlices[key]
	granted := s.atMost(p, spec.Shape)
	if lacks := nodes.Missing(spec.Shape, granted); remote == nil && spec.Class != "" && lacks != "" {
		return &backend.StageError{Stage: backend.StageResources, Err: backend.ErrFull,
			Message: fmt.Sprintf("provider %s has %s only", p.ID, lacks)}
	}
	if remote == nil {
		remote = &RemoteSlice{Object: newObject(p.ID, b.attemptLabels(spec.Attempt), nil, now), Granted: granted}
		s.RemoteSlices[key] = remote
	}
	if lacks := nodes.Missing(spec.Shape, remote.Granted); lacks != "" {
		return &backend.StageError{Stage: backend.StageResources, Err: backend.ErrShort,
			Message: fmt.Sprintf("provider %s grants %s only", p.ID, lacks)}
	}
	return nil
}

// atMost returns the shape, with each resource limited to the provider's free capacity.
func (s *State) atMost(p *Provider, shape corev1.ResourceList) corev1.ResourceList {
	granted := corev1.ResourceList{}
	for key, requested := range shape {
		granted[key] = requested
		free, bounded := p.Capacity[key]
		if !bounded {
			continue
		}
		free = free.DeepCopy()
		for _, slice := range s.RemoteSlices {
			if slice.Provider == p.ID {
				free.Sub(slice.Granted[key])
			}
		}
		if free.Sign() < 0 {
			free.Set(0)
		}
		if free.Cmp(requested) < 0 {
			granted[key] = free
		}
	}
	return granted
}
