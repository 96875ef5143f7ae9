package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Observe reads our Tenant and our slices, see backend.Peerings.
func (b *Backend) Observe(_ context.Context, provider fleet.Provider) (seen backend.Observation, err error) {
	id, err := read(provider.Credentials)
	if err != nil {
		return seen, fmt.Errorf("observe provider %s: %w", provider.ID, err)
	}
	var observeErr error
	_, err = b.world.view(func(s *State) { seen, observeErr = b.observe(s, s.providerOr(id), provider.ID) })
	if err == nil {
		err = observeErr
	}
	return seen, err
}

// observe reads the state of the provider that the credentials name.
func (b *Backend) observe(s *State, p *Provider, id string) (seen backend.Observation, err error) {
	switch {
	case p.Knobs.Unreachable:
		return seen, fmt.Errorf("observe provider %s: no answer: %w", id, backend.ErrUnreachable)
	case p.Knobs.Unauthorized:
		return seen, fmt.Errorf("observe provider %s: it does not accept our credentials: %w: %w", p.ID,
			backend.ErrUnreachable, backend.ErrCredentials)
	case p.ID != id:
		return seen, fmt.Errorf("observe provider %s: its credentials lead to provider %s: %w", id, p.ID, backend.ErrInvalid)
	case s.Consumer.Peerings[p.ID] == nil:
		return seen, nil
	case p.Tenant == nil:
		seen.Tenant, seen.Message = fleet.RefusingRemoved, p.describe("our Tenant is gone there")
	case p.Condition != "":
		seen.Tenant, seen.Message = p.Condition, p.describe(fmt.Sprintf("our Tenant is %s", p.Condition))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Consumer.Slices)) {
		slice := s.Consumer.Slices[name]
		if slice.Provider == p.ID && b.ours(slice.Labels) && slice.Deleting == nil && s.RemoteSlices[remoteKey(p.ID,
			name)] == nil {
			seen.Absent = append(seen.Absent, name)
		}
	}
	return seen, nil
}

// Cordon cordons the attempt's Node on our behalf, or removes our cordon, see backend.Cordons.
func (b *Backend) Cordon(ctx context.Context, a fleet.Attempt, cordoned bool) error {
	_, err := b.world.edit(ctx, attemptKeys(a), func(s *State) error {
		if _, node := b.nodeObjects(s, a); node != nil {
			backend.SetCordon(node, cordoned)
		}
		return nil
	})
	return err
}

// LoseSlice removes a slice on the provider, as the provider's administrators would. The slice stays on the consumer.
func (w *World) LoseSlice(ctx context.Context, provider, name string) error {
	return w.editProvider(ctx, provider, func(s *State, _ *Provider) { delete(s.RemoteSlices, remoteKey(provider, name)) })
}

// updateNodes sets the Ready conditions of a provider's Nodes to the state of their kubelets.
func (s *State) updateNodes(provider string, now time.Time) {
	for name, slice := range s.Consumer.Slices {
		if slice.Provider == provider {
			s.heartbeat(name, now)
		}
	}
}
