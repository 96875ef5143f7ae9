package sim

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/nodes"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// List lists the attempts with objects on the consumer, see backend.Inventory.
func (b *Backend) List(ctx context.Context, scope backend.Scope) (list []fleet.Found, err error) {
	if err := b.world.runKubelets(ctx); err != nil {
		return nil, err
	}
	_, err = b.world.view(func(s *State) {
		names := s.names()
		if scope.Provider != "" {
			names = s.namesOn(scope.Provider)
		}
		for _, name := range names {
			if f, ok := b.find(s, name); ok && scope.Contains(f.Attempt) {
				list = append(list, f)
			}
		}
	})
	return list, err
}

// names returns the sorted names of all slices, virtual nodes and Nodes.
func (s *State) names() []string {
	names := slices.Collect(maps.Keys(s.Consumer.Slices))
	names = slices.AppendSeq(names, maps.Keys(s.Consumer.Virtuals))
	names = slices.AppendSeq(names, maps.Keys(s.Consumer.Nodes))
	slices.Sort(names)
	return slices.Compact(names)
}

// namesOn returns the sorted names of the provider's slices, virtual nodes and Nodes.
func (s *State) namesOn(provider string) (names []string) {
	for name, slice := range s.Consumer.Slices {
		if slice.Provider == provider {
			names = append(names, name)
		}
	}
	for name, virtual := range s.Consumer.Virtuals {
		if virtual.Provider == provider {
			names = append(names, name)
		}
	}
	for name, node := range s.Consumer.Nodes {
		if node.Labels[fleet.LabelProvider] == provider {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// find returns the consumer's objects of the attempt with that name, if the attempt is ours.
func (b *Backend) find(s *State, name string) (f fleet.Found, ok bool) {
	ours := func(labels map[string]string, provider string) bool {
		a, found := b.attemptOf(labels)
		if !found || a.ObjectName() != name {
			return false
		}
		if !ok {
			a.Provider = s.provider(provider)
			f.Attempt, ok = a, true
		}
		return true
	}
	if slice := s.Consumer.Slices[name]; slice != nil && ours(slice.Labels, slice.Provider) {
		f.Slice, f.Terminating = true, slice.Deleting != nil
	}
	if virtual := s.Consumer.Virtuals[name]; virtual != nil && ours(virtual.Labels, virtual.Provider) {
		f.Virtual, f.Booking = true, backend.BookingOf(virtual.Annotations)
		f.Marked = virtual.Annotations[backend.AnnotationStamp] == f.Attempt.InstanceID()
		f.Terminating = f.Terminating || virtual.Deleting != nil
	}
	if node := s.Consumer.Nodes[name]; node != nil && ours(node.Annotations, node.Labels[fleet.LabelProvider]) {
		nodes.Describe(&f, node)
	}
	return f, ok
}

// Peers lists our peerings, see backend.Inventory.
func (b *Backend) Peers(_ context.Context, provider string) ([]fleet.Provider, error) {
	var peers []fleet.Provider
	_, err := b.world.view(func(s *State) {
		for _, id := range slices.Sorted(maps.Keys(s.Consumer.Peerings)) {
			if b.ours(s.Consumer.Peerings[id].Labels) && (provider == "" || id == provider) {
				peers = append(peers, s.provider(id))
			}
		}
		now := time.Now()
		for id, recorded := range s.Consumer.Refused {
			if provider != "" && id != provider {
				continue
			}
			at, known := slices.BinarySearchFunc(peers, id,
				func(p fleet.Provider, id string) int { return cmp.Compare(p.ID, id) })
			if !known && b.ours(recorded.Labels) {
				peers = slices.Insert(peers, at, fleet.Provider{ID: id, Credentials: backend.CredentialsOf(recorded.Annotations)})
			}
			if b.ours(recorded.Labels) {
				peers[at].Refusing = s.recordedRefusal(id, now)
			}
		}
	})
	return peers, err
}

// provider returns the provider. It includes the credentials if a peering with the provider exists.
func (s *State) provider(id string) fleet.Provider {
	p := fleet.Provider{ID: id}
	if peering := s.Consumer.Peerings[id]; peering != nil {
		p.Credentials = backend.CredentialsOf(peering.Annotations)
	}
	return p
}
