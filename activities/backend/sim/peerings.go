package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Establish makes the peering, see backend.Peerings.
func (b *Backend) Establish(ctx context.Context, provider fleet.Provider, progress backend.Progress) error {
	id, err := read(provider.Credentials)
	if err != nil {
		return fmt.Errorf("establish peering with provider %s: %w", provider.ID, err)
	}
	if id != provider.ID {
		return fmt.Errorf("establish peering with provider %s: its credentials lead to provider %s: %w",
			provider.ID, id, backend.ErrInvalid)
	}
	return b.drive(ctx, providerKeys(provider.ID), backend.StageAPIServer, progress,
		func(s *State, now time.Time) (*waiting, error) {
			return b.establish(s, now, provider)
		})
}

// establish moves the peering through its stages, as far as possible now.
func (b *Backend) establish(s *State, now time.Time, provider fleet.Provider) (*waiting, error) {
	p := s.Providers[provider.ID]
	if p.isUnreachable() {
		return nil, unreachable(backend.StageAPIServer, provider.ID)
	}
	api := Track{Stage: backend.StageAPIServer}
	if w, err := api.advance(p, 0, now); w != nil || err != nil {
		return w, err
	}
	if err := b.checkRefusal(s, p, backend.StageAPIServer, now); err != nil {
		return nil, err
	}
	peering := s.Consumer.Peerings[provider.ID]
	if peering != nil && !b.ours(peering.Labels) {
		if peering.established() {
			return nil, nil
		}
		return &waiting{stage: backend.StageIdentity, message: "another owner's peering is not finished yet"}, nil
	}
	peering = b.ensurePeering(s, p, provider, now)
	return peering.makeOn(p, provider.Network.ModeOrDefault(), s.Delays.Peer/time.Duration(len(peerStages)), now)
}

// makeOn moves the peering through the stages of its creation. The stages of the network are included only if the
// mode is gateway.
func (peering *Peering) makeOn(p *Provider, mode fleet.NetworkMode, delay time.Duration,
	now time.Time) (*waiting, error) {
	for _, stage := range peerStages {
		if stage.OfNetwork() && mode != fleet.NetworkGateway {
			continue
		}
		if w, err := peering.pass(p, peerStages, stage, delay, now); w != nil || err != nil {
			return w, err
		}
	}
	return nil, nil
}

// isUnreachable reports whether the provider does not answer our requests.
func (p *Provider) isUnreachable() bool {
	return p == nil || p.Knobs.Unreachable || p.Knobs.Unauthorized
}

// ensurePeering makes the peering on the consumer and the Tenant on the provider, if they are missing.
func (b *Backend) ensurePeering(s *State, p *Provider, provider fleet.Provider, now time.Time) *Peering {
	peering := s.Consumer.Peerings[provider.ID]
	if peering == nil {
		annotations := map[string]string{backend.AnnotationCredentials: backend.CredentialsText(provider.Credentials)}
		peering = &Peering{Object: newObject(p.ID, b.ourLabels(), annotations, now)}
		s.Consumer.Peerings[provider.ID] = peering
	}
	delete(s.Consumer.Refused, provider.ID)
	if peering.Deleting != nil { // a RemovePeering was interrupted: start again
		peering.Deleting, peering.Track = nil, Track{}
	}
	if p.Tenant == nil {
		tenant := newObject(provider.ID, b.ourLabels(), nil, now)
		p.Tenant, p.Condition = &tenant, ""
	}
	delete(p.Tenant.Labels, backend.LabelRefused)
	return peering
}

// established reports whether nodes can be made on the peering.
func (peering *Peering) established() bool {
	return peering != nil && peering.Deleting == nil && peering.at(peerStages, backend.StageReachable)
}

func unreachable(stage backend.Stage, provider string) error {
	return &backend.StageError{
		Stage: stage, Message: fmt.Sprintf("provider %s does not answer", provider), Err: backend.ErrUnreachable,
	}
}
