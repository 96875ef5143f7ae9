package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// Unpeer removes the peering, see backend.Peerings.
func (b *Backend) Unpeer(ctx context.Context, provider backend.Provider, progress backend.Progress) error {
	return b.drive(ctx, backend.StageIdentityGone, progress, func(s *State, now time.Time) (*waiting, error) {
		return b.unpeer(s, now, provider.ID)
	})
}

func (b *Backend) unpeer(s *State, now time.Time, id string) (*waiting, error) {
	p, peering := s.providerOr(id), s.Consumer.Peerings[id]
	tenant := p.Tenant != nil && b.ours(p.Tenant.Labels)
	switch {
	case peering == nil && !tenant:
		return nil, nil
	case peering != nil && !b.ours(peering.Labels):
		return nil, nil
	}
	if err := inUse(s, id); err != nil {
		return nil, err
	}
	if peering != nil && peering.Deleting == nil {
		peering.delete(now)
		peering.Track = Track{}
	}
	delay := s.Delays.Unpeer / time.Duration(len(unpeerStages))
	// Identity, then Tenant: what the Tenant allows is needed until the Identity is gone.
	for _, stage := range unpeerStages {
		if stage == backend.StageTenantGone && p.Knobs.Unreachable {
			return &waiting{stage: stage, message: fmt.Sprintf("provider %s does not answer", id)}, nil
		}
		if peering == nil || peering.at(unpeerStages, stage) {
			continue
		}
		if w := peering.begin(p, stage, delay, now); w != nil {
			return w, nil
		}
		if w := p.holds(stage, peering.Since.Add(delay), now); w != nil {
			return w, nil
		}
		peering.Reached = true
	}
	if tenant {
		p.Tenant = nil
	}
	delete(s.Consumer.Peerings, id)
	return nil, nil
}

// inUse is ErrInUse while anyone has a slice with the provider, on either side, or the peering serves the provider too.
func inUse(s *State, id string) error {
	for name, slice := range s.Consumer.Slices {
		if slice.Provider == id {
			return fmt.Errorf("unpeer provider %s: slice %s exists: %w", id, name, backend.ErrInUse)
		}
	}
	if p := s.Providers[id]; p != nil && !p.Knobs.Unreachable {
		for name := range p.Slices {
			return fmt.Errorf("unpeer provider %s: slice %s exists on the provider: %w", id, name, backend.ErrInUse)
		}
	}
	if peering := s.Consumer.Peerings[id]; peering != nil && peering.BothWays {
		return fmt.Errorf("unpeer provider %s: the provider consumes from us too: %w", id, backend.ErrInUse)
	}
	return nil
}
