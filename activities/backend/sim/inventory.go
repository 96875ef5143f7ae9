package sim

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// List lists what exists on the consumer, see backend.Inventory.
func (b *Backend) List(ctx context.Context, group string) ([]backend.Found, error) {
	s, err := b.look(ctx)
	if err != nil {
		return nil, err
	}
	return b.list(s, group), nil
}

func (b *Backend) list(s *State, group string) []backend.Found {
	found := map[string]*backend.Found{}
	entry := func(labels map[string]string, provider string) *backend.Found {
		a, ok := b.attemptOf(labels)
		if !ok || group != "" && a.Group != group {
			return nil
		}
		name := a.ObjectName()
		if found[name] == nil {
			a.Provider = s.provider(provider)
			found[name] = &backend.Found{Attempt: a}
		}
		return found[name]
	}
	for _, slice := range s.Consumer.Slices {
		if f := entry(slice.Labels, slice.Provider); f != nil {
			f.Slice, f.Booking = true, bookingOf(slice.Annotations)
			f.Leaving = f.Leaving || slice.Deleting != nil
		}
	}
	for _, virtual := range s.Consumer.Virtuals {
		if f := entry(virtual.Labels, virtual.Provider); f != nil {
			f.Virtual = true
			f.Marked = virtual.Annotations[backend.AnnotationStamp] == f.Attempt.InstanceID()
			f.Leaving = f.Leaving || virtual.Deleting != nil
		}
	}
	for _, node := range s.Consumer.Nodes {
		if f := entry(node.Labels, node.Labels["liqo.io/remote-cluster-id"]); f != nil {
			f.Node, f.Ready = true, isReady(node)
			f.Stamped = node.Spec.ProviderID == f.Attempt.InstanceID()
			f.Leaving = f.Leaving || node.DeletionTimestamp != nil
		}
	}
	var list []backend.Found
	for _, name := range slices.Sorted(maps.Keys(found)) {
		list = append(list, *found[name])
	}
	return list
}

// Peers lists the peerings that are ours, see backend.Inventory.
func (b *Backend) Peers(context.Context) ([]backend.Provider, error) {
	s, err := b.world.Snapshot()
	if err != nil {
		return nil, err
	}
	var peers []backend.Provider
	for _, id := range slices.Sorted(maps.Keys(s.Consumer.Peerings)) {
		if b.ours(s.Consumer.Peerings[id].Labels) {
			peers = append(peers, s.provider(id))
		}
	}
	return peers, nil
}

// provider is the provider with the credentials its peering was made with, if it was ours.
func (s *State) provider(id string) backend.Provider {
	p := backend.Provider{ID: id}
	var credentials fleet.Credentials
	if peering := s.Consumer.Peerings[id]; peering != nil &&
		json.Unmarshal([]byte(peering.Annotations[backend.AnnotationCredentials]), &credentials) == nil {
		p.Credentials = credentials
	}
	return p
}
