package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// RemovePeering removes the peering, see backend.Peerings.
func (b *Backend) RemovePeering(ctx context.Context, provider fleet.Provider, progress backend.Progress) error {
	return b.drive(ctx, providerKeys(provider.ID), backend.StageIdentityGone, progress,
		func(s *State, now time.Time) (*waiting, error) {
			return b.unpeer(s, now, provider.ID)
		})
}

// unpeer removes the peering of the provider, as far as possible now.
func (b *Backend) unpeer(s *State, now time.Time, id string) (*waiting, error) {
	p, peering := s.providerOr(id), s.Consumer.Peerings[id]
	if !p.Knobs.Unreachable {
		b.refusal(s, p, now) // records the removal of a Tenant while the peering still proves it
	}
	tenant := p.Tenant != nil && b.ours(p.Tenant.Labels)
	switch {
	case peering == nil && !tenant:
		return nil, s.kept(p, now)
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
	if w := peering.dissolve(p, s.Delays.Unpeer/time.Duration(len(unpeerStages)), now); w != nil {
		return w, nil
	}
	delete(s.Consumer.Peerings, id)
	if tenant {
		p.removeTenant()
	}
	return nil, s.kept(p, now)
}

// removeTenant removes the Tenant. It keeps a Tenant that records a refusal, and labels it.
func (p *Provider) removeTenant() {
	if p.Condition == "" {
		p.Tenant = nil
		return
	}
	p.Tenant.Labels[backend.LabelRefused] = string(p.Condition)
}

// kept returns, as an error, the refusal whose record stays after a removal. If no record stays, it returns nil.
func (s *State) kept(p *Provider, now time.Time) error {
	if refusing := s.recordedRefusal(p.ID, now); refusing != nil {
		return refuse(backend.StageTenantGone, *refusing)
	}
	delete(s.Consumer.Refused, p.ID)
	if p.Tenant == nil || p.Tenant.Labels[backend.LabelRefused] == "" {
		return nil
	}
	return refuse(backend.StageTenantGone, *p.closed())
}

// dissolve moves the peering through the stages of its removal. The Identity is removed before the Tenant, because
// the removal of the Identity needs the Tenant's permissions. The parameter peering is nil when only the Tenant
// remains.
func (peering *Peering) dissolve(p *Provider, delay time.Duration, now time.Time) *waiting {
	for _, stage := range unpeerStages {
		if stage == backend.StageTenantGone && p.Knobs.Unreachable {
			return &waiting{stage: stage, message: fmt.Sprintf("provider %s does not answer", p.ID)}
		}
		if peering == nil || peering.at(unpeerStages, stage) {
			continue
		}
		if w := peering.start(p, stage, delay, now); w != nil {
			return w
		}
		if w := p.waitFor(stage, peering.Since.Add(delay), now); w != nil {
			return w
		}
		peering.Reached = true
	}
	return nil
}

// inUse returns ErrInUse while any hub has a slice for the provider, on the consumer or on the provider. It also
// returns ErrInUse while the provider uses this cluster's capacity over the same peering.
func inUse(s *State, id string) error {
	for name, slice := range s.Consumer.Slices {
		if slice.Provider == id {
			return fmt.Errorf("unpeer provider %s: slice %s exists: %w", id, name, backend.ErrInUse)
		}
	}
	if p := s.Providers[id]; p != nil && !p.Knobs.Unreachable {
		for key, slice := range s.RemoteSlices {
			if slice.Provider == id {
				return fmt.Errorf("unpeer provider %s: slice %s exists on the provider: %w", id, key, backend.ErrInUse)
			}
		}
	}
	if peering := s.Consumer.Peerings[id]; peering != nil && peering.BothWays {
		return fmt.Errorf("unpeer provider %s: the provider consumes from us too: %w", id, backend.ErrInUse)
	}
	return nil
}
