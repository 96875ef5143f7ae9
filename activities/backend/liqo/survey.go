package liqo

import (
	"context"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// survey is the first look of a RemovePeering: what is there, and whether any of it is to be removed.
type survey struct {
	*peering
	nothing bool // nothing is to be removed
}

func (s *survey) done(ctx context.Context) (bool, string, error) {
	if err := s.locate(ctx); err != nil {
		return false, "", err
	}
	identity, err := s.controlPlaneIdentity(ctx)
	if client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("read Identity: %w", err)
	}
	found := err == nil
	if found && !s.mine(identity) {
		s.nothing = true
		return true, "", nil
	}
	if err := s.inUse(ctx); err != nil {
		return false, "", err
	}
	if err := s.reach(ctx); err != nil {
		return s.unreached(ctx, found, err)
	}
	if found {
		return true, "", nil
	}
	s.nothing, err = s.byOthers(ctx)
	return err == nil, "", err
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
	return err == nil && p.mine(nonce), nil
}
