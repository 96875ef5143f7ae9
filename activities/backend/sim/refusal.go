package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Refused is the consumer's record of a provider that has removed its Tenant.
type Refused struct {
	Object
	Until time.Time `json:"until"`
}

// Close simulates that the provider's administrators refuse the consumer: they cordon, drain or remove its Tenant. An
// empty kind reverts a cordon or drain, but does not restore a removed Tenant.
func (w *World) Close(ctx context.Context, provider string, kind fleet.RefusingKind) error {
	return w.editProvider(ctx, provider, func(s *State, p *Provider) {
		p.Condition = ""
		switch {
		case kind == fleet.RefusingRemoved:
			p.Tenant = nil
		case p.Tenant != nil:
			p.Condition = kind
		}
		if kind == fleet.RefusingRemoved || kind == fleet.RefusingDrained {
			for key, slice := range s.RemoteSlices {
				if slice.Provider == provider {
					delete(s.RemoteSlices, key)
				}
			}
		}
	})
}

// Refusal reads whether the provider refuses the consumer, see backend.Peerings.
func (b *Backend) Refusal(ctx context.Context, provider fleet.Provider) (found *fleet.ProviderRefusal, err error) {
	if _, err := read(provider.Credentials); err != nil {
		return nil, fmt.Errorf("ask whether provider %s refuses: %w", provider.ID, err)
	}
	err = b.drive(ctx, providerKeys(provider.ID), backend.StageAPIServer, nil,
		func(s *State, now time.Time) (*waiting, error) {
			p := s.Providers[provider.ID]
			if p == nil || p.Knobs.Unreachable {
				return nil, unreachable(backend.StageAPIServer, provider.ID)
			}
			found = b.refusal(s, p, now)
			return nil, nil
		})
	return found, err
}

// refusal returns the provider's present refusal, or nil. If the Tenant of our existing peering is missing, the
// provider has removed it, and refusal records this.
func (b *Backend) refusal(s *State, p *Provider, now time.Time) *fleet.ProviderRefusal {
	if found := s.recordedRefusal(p.ID, now); found != nil {
		return found
	}
	peering := s.Consumer.Peerings[p.ID]
	switch {
	case p.Tenant != nil && p.Condition != "":
		return p.closed()
	case p.Tenant != nil, peering == nil, peering.Deleting != nil, !b.ours(peering.Labels),
		!peering.at(peerStages, backend.StageTenant):
		return nil
	}
	object := newObject(p.ID, b.ourLabels(), peering.Annotations, now)
	object.Labels[backend.LabelRefused] = string(fleet.RefusingRemoved)
	s.Consumer.Refused[p.ID] = &Refused{Object: object, Until: now.Add(b.opts.RefusedFor).UTC()}
	return s.recordedRefusal(p.ID, now)
}

// closed returns the refusal that a cordoned or drained Tenant expresses.
func (p *Provider) closed() *fleet.ProviderRefusal {
	reason := fmt.Sprintf("provider %s has set our Tenant to %s", p.ID, p.Condition)
	return &fleet.ProviderRefusal{Kind: p.Condition, Reason: reason}
}

// checkRefusal returns the error of a refusing provider at the stage, or nil.
func (b *Backend) checkRefusal(s *State, p *Provider, stage backend.Stage, now time.Time) error {
	if refusing := b.refusal(s, p, now); refusing != nil {
		return refuse(stage, *refusing)
	}
	return nil
}

// recordedRefusal returns the refusal that the consumer has recorded, until it expires.
func (s *State) recordedRefusal(id string, now time.Time) *fleet.ProviderRefusal {
	recorded := s.Consumer.Refused[id]
	if recorded == nil || !now.Before(recorded.Until) {
		return nil
	}
	reason := fmt.Sprintf("provider %s has removed its Tenant for this cluster", id)
	return &fleet.ProviderRefusal{Kind: fleet.RefusingRemoved, Until: recorded.Until, Reason: reason}
}

// refuse returns the error of a refusing provider.
func refuse(stage backend.Stage, r fleet.ProviderRefusal) error {
	return &backend.StageError{Stage: stage, Message: r.Reason, Err: &backend.RefusingError{ProviderRefusal: r}}
}
