package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// RecoverGroup returns every attempt of the group that has objects, so that a group whose history is lost rebuilds its
// Ledger from what exists. Retried until it succeeds; it never returns a part of these. After them come the attempts that
// have nothing but a live hold, so that one that nobody has booked any longer is given back; of these it may miss some.
func (a *Activities) RecoverGroup(ctx context.Context, group string) ([]backend.Found, error) {
	ctx, _, stop := heartbeat(ctx)
	defer stop()
	found, err := a.Backend.List(ctx, group)
	if err != nil {
		return nil, wall(ctx, "", fmt.Errorf("list objects of group %s: %w", group, err))
	}
	return backend.Pack(append(found, a.heldOnly(ctx, group, found)...)), nil
}

// RecoveredProvider is what exists with a provider.
type RecoveredProvider struct {
	// Peering is ours when set; its credentials are those it was made with.
	Peering  *backend.Provider `json:"peering,omitempty"`
	Attempts []backend.Found   `json:"attempts,omitempty"`
	// LingerSeconds and Unpeer are those of the provider's offer, if there is one now; see fleet.Offer.
	LingerSeconds *int64             `json:"lingerSeconds,omitempty"`
	Unpeer        fleet.UnpeerPolicy `json:"unpeer,omitempty"`
}

// RecoverProvider returns what exists with one provider, so that a provider entity whose history is lost rebuilds its
// holds.
func (a *Activities) RecoverProvider(ctx context.Context, id string) (RecoveredProvider, error) {
	ctx, _, stop := heartbeat(ctx)
	defer stop()
	var out RecoveredProvider
	peers, err := a.Backend.Peers(ctx)
	if err != nil {
		return out, wall(ctx, id, fmt.Errorf("list peerings: %w", err))
	}
	for i := range peers {
		if peers[i].ID == id {
			out.Peering = &peers[i]
		}
	}
	found, err := a.Backend.List(ctx, "")
	if err != nil {
		return out, wall(ctx, id, fmt.Errorf("list objects: %w", err))
	}
	for _, f := range found {
		if f.Attempt.Provider.ID == id {
			out.Attempts = append(out.Attempts, f)
		}
	}
	out.Attempts = backend.Pack(out.Attempts)
	a.policy(ctx, id, &out)
	return out, nil
}

// policy fills in what the provider's offer says of its peering. The objects do not say it. A catalog that cannot be read
// must not hold the recovery up: the next hold brings the offer, and until then the defaults hold.
func (a *Activities) policy(ctx context.Context, id string, out *RecoveredProvider) {
	if offer := a.offerOf(ctx, id); offer != nil {
		out.LingerSeconds, out.Unpeer = offer.LingerSeconds, offer.Unpeer
	}
}

// catalogBound is how long one who can do without an offer waits for the catalog.
const catalogBound = 10 * time.Second

// offerOf is what the provider offers now; nil when it offers nothing, or nobody can tell.
func (a *Activities) offerOf(ctx context.Context, id string) *fleet.Offer {
	bounded, cancel := context.WithTimeout(ctx, catalogBound)
	defer cancel()
	offers, _, err := a.Catalog.Offers(bounded)
	if err != nil {
		activity.GetLogger(ctx).Warn("offers cannot be read; the provider is dealt with as if it offered nothing", "provider", id, "error", err)
	}
	for i := range offers {
		if offers[i].Provider == id {
			return &offers[i]
		}
	}
	return nil
}
