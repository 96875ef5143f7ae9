package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Leftovers lists our objects that exist on the provider only, see backend.Leftovers.
func (b *Backend) Leftovers(_ context.Context, provider fleet.Provider) (left []fleet.Orphan, err error) {
	var listErr error
	_, err = b.world.view(func(s *State) {
		p := s.providerOr(provider.ID)
		if p.Knobs.Unreachable || p.Knobs.Unauthorized {
			listErr = fmt.Errorf("look for what is left on provider %s: no answer: %w", p.ID, backend.ErrUnreachable)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(s.RemoteSlices)) {
			slice := s.RemoteSlices[key]
			a, ours := b.attemptOf(slice.Labels)
			if ours && slice.Provider == p.ID && s.Consumer.Slices[a.ObjectName()] == nil {
				a.Provider = provider
				left = append(left, fleet.Orphan{Attempt: a, UID: slice.UID, Object: "slice " + key})
			}
		}
		if t := p.Tenant; t != nil && b.ours(t.Labels) && t.Labels[backend.LabelRefused] == "" &&
			s.Consumer.Peerings[p.ID] == nil {
			left = append(left, fleet.Orphan{Attempt: fleet.Attempt{Provider: provider}, UID: t.UID, Object: "Tenant"})
		}
	})
	if err == nil {
		err = listErr
	}
	return left, err
}

// RemoveLeftover removes the provider's slice of an attempt, see backend.Leftovers.
func (b *Backend) RemoveLeftover(ctx context.Context, orphan fleet.Orphan) error {
	a := orphan.Attempt
	_, err := b.world.edit(ctx, attemptKeys(a), func(s *State) error {
		if s.providerOr(a.Provider.ID).Knobs.Unreachable {
			return fmt.Errorf("remove %s: no answer: %w", orphan.Object, backend.ErrUnreachable)
		}
		key := remoteKey(a.Provider.ID, a.ObjectName())
		if slice := s.RemoteSlices[key]; slice != nil && slice.UID == orphan.UID && s.Consumer.Slices[a.ObjectName()] == nil {
			delete(s.RemoteSlices, key)
		}
		return nil
	})
	return err
}
