package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Join makes the attempt's node, see backend.Nodes.
func (b *Backend) Join(ctx context.Context, spec backend.NodeSpec, progress backend.Progress) (backend.Node, error) {
	var node backend.Node
	if err := spec.Kind(fleet.NodesVirtual); err != nil {
		return node, err
	}
	err := b.drive(ctx, attemptKeys(spec.Attempt), backend.StageSliceAuth, progress,
		func(s *State, now time.Time) (*waiting, error) {
			w, err := b.join(s, now, spec)
			if w == nil && err == nil {
				name := spec.Attempt.ObjectName()
				node = backend.Node{Name: name, UID: string(s.Consumer.Nodes[name].UID)}
			}
			return w, err
		})
	if err != nil {
		return backend.Node{}, err
	}
	return node, nil
}

// join moves the attempt through the stages of a join, as far as possible now.
func (b *Backend) join(s *State, now time.Time, spec backend.NodeSpec) (*waiting, error) {
	a, id := spec.Attempt, spec.Attempt.Provider.ID
	p := s.Providers[id]
	if p == nil || !s.Consumer.Peerings[id].established() {
		return nil, fmt.Errorf("join %s: no established peering with provider %s; establish it first: %w",
			a.ObjectName(), id, backend.ErrNotPeered)
	}
	if err := b.conflict(s, a); err != nil {
		return nil, err
	}
	slice := b.ensureSlice(s, p, spec, now)
	if b.isTerminating(s, a) {
		return nil, fmt.Errorf("join %s: what is there of it is being removed: %w", a.ObjectName(), backend.ErrConflict)
	}
	delay := s.Delays.Join / time.Duration(len(joinStages))
	for _, stage := range joinStages {
		if err := b.refuses(s, p, a, stage, now); err != nil {
			return nil, err
		}
		if w, err := slice.pass(p, joinStages, stage, delay, now); w != nil || err != nil {
			return w, err
		}
		if err := b.reach(s, p, spec, stage, now); err != nil {
			return nil, err
		}
	}
	return b.stamp(s, p, a, now)
}

// refuses returns an error when the provider refuses the consumer as a whole and therefore does not grant the slice.
func (b *Backend) refuses(s *State, p *Provider, a fleet.Attempt, stage backend.Stage, now time.Time) error {
	if stage != backend.StageResources || p.Knobs.Unreachable || s.RemoteSlices[remoteKey(p.ID, a.ObjectName())] != nil {
		return nil
	}
	return b.checkRefusal(s, p, stage, now)
}

// reach makes the objects of a stage that was reached.
func (b *Backend) reach(s *State, p *Provider, spec backend.NodeSpec, stage backend.Stage, now time.Time) error {
	name := spec.Attempt.ObjectName()
	switch stage {
	case backend.StageResources:
		return b.grant(s, p, spec, now)
	case backend.StageVirtualKubelet:
		if s.Consumer.Virtuals[name] == nil {
			annotations, err := bookingAnnotation(spec.Booking)
			if err != nil {
				return err
			}
			object := newObject(p.ID, b.attemptLabels(spec.Attempt), annotations, now)
			s.Consumer.Virtuals[name] = &object
		}
		b.ensureKubelet(s, spec, now)
	case backend.StageNode:
		if s.Consumer.Nodes[name] == nil {
			s.register(name, now)
		}
	case backend.StageReady:
		setReady(s.Consumer.Nodes[name], s.works(name, p), now)
	default: // the other stages make no objects
	}
	return nil
}

// stamp marks the virtual node and then stamps the Node, in two changes of the world. It waits until the Node is
// Ready. It also waits while another attempt of the instance is marked or stamped.
func (b *Backend) stamp(s *State, p *Provider, a fleet.Attempt, now time.Time) (*waiting, error) {
	name := a.ObjectName()
	node, virtual := s.Consumer.Nodes[name], s.Consumer.Virtuals[name]
	if node.Spec.ProviderID == a.InstanceID() && isReady(node) &&
		virtual.Annotations[backend.AnnotationStamp] == a.InstanceID() {
		return nil, nil
	}
	if !isReady(node) {
		return &waiting{stage: backend.StageReady, message: fmt.Sprintf("node %s is not ready", name)}, nil
	}
	if w, err := b.otherAttempt(s, a); w != nil || err != nil {
		return w, err
	}
	if p.Knobs.Hang == backend.StageStamp {
		return &waiting{stage: backend.StageStamp, message: p.describe("held back")}, nil
	}
	if virtual.Annotations[backend.AnnotationStamp] != a.InstanceID() {
		if virtual.Annotations == nil {
			virtual.Annotations = map[string]string{}
		}
		virtual.Annotations[backend.AnnotationStamp] = a.InstanceID()
		return &waiting{stage: backend.StageStamp, message: fmt.Sprintf("stamping node %s", name), due: now}, nil
	}
	if node.Spec.ProviderID != "" && node.Spec.ProviderID != a.InstanceID() {
		return nil, fmt.Errorf("join %s: the node has the providerID %q: %w", name, node.Spec.ProviderID, backend.ErrConflict)
	}
	node.Spec.ProviderID = a.InstanceID()
	return nil, nil
}

// otherAttempt returns the reason why the attempt must not be stamped yet: another attempt's Node carries the
// instance id, or its virtual node is marked. If another attempt is both marked and stamped, its Node is the
// instance's node, and otherAttempt returns ErrConflict.
func (b *Backend) otherAttempt(s *State, a fleet.Attempt) (*waiting, error) {
	name, id := a.ObjectName(), a.InstanceID()
	wait := func(format, kind, other string) (*waiting, error) {
		return &waiting{stage: backend.StageStamp, message: fmt.Sprintf(format, other), on: kind + "/" + other}, nil
	}
	for other, n := range s.Consumer.Nodes {
		if other == name || n.Spec.ProviderID != id {
			continue
		}
		virtual := s.Consumer.Virtuals[other]
		lost := virtual == nil || virtual.Deleting != nil || n.DeletionTimestamp != nil ||
			virtual.Annotations[backend.AnnotationStamp] != id
		if !lost || !b.ours(n.Annotations) {
			return nil, fmt.Errorf("join %s: node %s is the instance %s: it is stamped and not lost: %w",
				name, other, id, backend.ErrConflict)
		}
		return wait("node %s of another attempt still carries the instance id", "node", other)
	}
	for other, virtual := range s.Consumer.Virtuals {
		if other != name && virtual.Annotations[backend.AnnotationStamp] == id {
			return wait("virtual node %s of another attempt is still marked", "virtual", other)
		}
	}
	return nil, nil
}
