package liqo

import (
	"context"
	"fmt"

	"github.com/liqotech/liqo/pkg/consts"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// survey is the first look of an Unpeer: what is there, and whether any of it is to be removed.
type survey struct {
	*peering
	nothing bool // nothing is to be removed
	tried   since
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

// unreached decides what becomes of an Unpeer whose provider cannot be used. Establish begins on the consumer, so when
// nothing of ours is here, nothing was begun there, and a provider that is gone for good must not hold up its end.
func (s *survey) unreached(ctx context.Context, found bool, cause error) (bool, string, error) {
	if found || s.ownNS {
		return false, "", cause
	}
	nonce, err := nonceSecret(ctx, s.local, s.localNS, consts.SignedNonceSecretLabelKey, signedNonceName, s.provider.ID)
	if client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("read signed nonce: %w", err)
	}
	if err == nil && s.mine(nonce) || !s.tried.longerThan(s.config.UnreachableAfter) {
		return false, "", cause
	}
	s.nothing = true
	return true, "", nil
}
