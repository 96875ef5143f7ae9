package liqo

import (
	"context"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// survey is the first look of a RemovePeering: what is there, and whether any of it is to be removed.
type survey struct {
	*peering
	nothing bool // nothing is to be removed
	// kept is the refusal that is in force, and whose record stays.
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
		return s.others(ctx)
	}
	if err := s.inUse(ctx); err != nil {
		return false, "", err
	}
	if !found {
		if noted, err := s.onlyNoted(ctx); err != nil || noted {
			return err == nil, "", err
		}
	}
	if err := s.reach(ctx); err != nil {
		return s.unreached(ctx, found, err)
	}
	if found {
		_, err := s.refusal(ctx) // notes it, while the Identity still shows it
		return err == nil, "", err
	}
	return s.begun(ctx)
}

// begun decides about a peering without our Identity.
func (s *survey) begun(ctx context.Context) (bool, string, error) {
	byOthers, err := s.byOthers(ctx)
	if err != nil || !byOthers {
		return err == nil, "", err
	}
	return s.others(ctx)
}

// others decides about a peering that is not ours: there is nothing to remove, unless its network is ours, which stays
// as long as it serves them.
func (s *survey) others(ctx context.Context) (bool, string, error) {
	ours, err := s.connectedHere(ctx)
	if err != nil {
		return false, "", err
	}
	if ours {
		return false, "", say(backend.ErrInUse, "others made the peering with %s, and it uses a network of this installation",
			s.provider.ID)
	}
	s.nothing = true
	return true, "", nil
}

// onlyNoted reports whether a refusal that is in force is all that is left, for which nobody needs the provider: it was
// cleared before the signed nonce went.
func (s *survey) onlyNoted(ctx context.Context) (bool, error) {
	noted, err := s.remembered(ctx)
	if noted == nil || err != nil {
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
		s.kept = noted
	}
	return s.nothing, nil
}

// unreached decides what becomes of a RemovePeering whose provider cannot be used. Establish begins on the consumer, so
// when nothing owned by us is here, nothing was begun there, and a provider that is gone for good must not hold up its
// end.
func (s *survey) unreached(ctx context.Context, found bool, cause error) (bool, string, error) {
	if found || !s.lasts(s.config.UnreachableAfter) {
		return false, "", cause
	}
	ours, err := s.begunHere(ctx)
	if err != nil {
		return false, "", err
	}
	if ours {
		return false, "", cause
	}
	s.nothing = true
	return true, "", nil
}

// begunHere reports whether Establish has left anything on the consumer that outlasts the Identity.
func (p *peering) begunHere(ctx context.Context) (bool, error) {
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
