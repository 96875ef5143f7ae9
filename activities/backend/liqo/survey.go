package liqo

import (
	"context"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// survey is the first step of a RemovePeering. It finds the existing objects, and decides whether any existing object
// must be removed.
type survey struct {
	*peering
	nothing bool // no object must be removed
	// kept is the present refusal, whose record stays.
	kept *fleet.ProviderRefusal
}

func (s *survey) done(ctx context.Context) (bool, string, error) {
	if err := s.locate(ctx); err != nil {
		return false, "", err
	}
	if err := s.admit(ctx, s.localNS); err != nil {
		return false, "", err
	}
	identity, err := s.controlPlaneIdentity(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("read Identity: %w", err)
	}
	found := err == nil
	if found && !s.mine(identity) {
		return s.ofAnotherOwner(ctx)
	}
	if err := s.inUse(ctx); err != nil {
		return false, "", err
	}
	if !found {
		if recorded, err := s.onlyRefusalRecorded(ctx); err != nil || recorded {
			return err == nil, "", err
		}
	}
	if err := s.locateRemote(ctx); err != nil {
		return s.unreached(ctx, found, err)
	}
	if found {
		_, err := s.refusal(ctx) // records a refusal while the Identity still proves it
		return err == nil, "", err
	}
	return s.withoutIdentity(ctx)
}

// withoutIdentity decides whether objects of a peering without our Identity must be removed.
func (s *survey) withoutIdentity(ctx context.Context) (bool, string, error) {
	otherOwner, err := s.hasOtherOwner(ctx)
	if err != nil || !otherOwner {
		return err == nil, "", err
	}
	return s.ofAnotherOwner(ctx)
}

// ofAnotherOwner decides whether objects of another owner's peering must be removed. Only the network of such a
// peering may be ours. The network stays while the peering uses it.
func (s *survey) ofAnotherOwner(ctx context.Context) (bool, string, error) {
	ours, err := s.connectedHere(ctx)
	if err != nil {
		return false, "", err
	}
	if ours {
		return false, "", errorf(backend.ErrInUse,
			"others made the peering with %s, and it uses a network of this installation",
			s.provider.ID)
	}
	s.nothing = true
	return true, "", nil
}

// onlyRefusalRecorded reports whether the record of a present refusal is the only remaining object. Then
// RemovePeering does not need the provider: it removes the provider's objects before the signed nonce, and the signed
// nonce is gone.
func (s *survey) onlyRefusalRecorded(ctx context.Context) (bool, error) {
	recorded, err := s.recordedRefusal(ctx)
	if recorded == nil || err != nil {
		return false, err
	}
	nonce, err := nonceSecret(ctx, s.local, s.localNS, consts.SignedNonceSecretLabelKey, signedNonceName, s.provider.ID)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read signed nonce: %w", err)
	}
	ours, wrong := s.connectedHere(ctx)
	if wrong != nil {
		return false, wrong
	}
	s.nothing = !ours && (err != nil || !s.mine(nonce))
	if s.nothing {
		s.kept = recorded
	}
	return s.nothing, nil
}

// unreached decides whether RemovePeering is complete although it cannot use the provider. Establish makes its first
// objects on the consumer. If no such object exists, nothing was made on the provider. In this case a provider that
// is gone permanently must not block the removal.
func (s *survey) unreached(ctx context.Context, found bool, cause error) (bool, string, error) {
	if found || !s.hasLasted(s.config.UnreachableAfter) {
		return false, "", cause
	}
	ours, err := s.startedHere(ctx)
	if err != nil {
		return false, "", err
	}
	if ours {
		return false, "", cause
	}
	s.nothing = true
	return true, "", nil
}

// startedHere reports whether the consumer has an object of Establish other than the Identity.
func (p *peering) startedHere(ctx context.Context) (bool, error) {
	if p.ownNS {
		return true, nil
	}
	nonce, err := nonceSecret(ctx, p.local, p.localNS, consts.SignedNonceSecretLabelKey, signedNonceName, p.provider.ID)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read signed nonce: %w", err)
	}
	if err == nil && p.mine(nonce) {
		return true, nil
	}
	return p.connectedHere(ctx)
}
