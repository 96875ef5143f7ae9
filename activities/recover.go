package activities

import (
	"context"
	"fmt"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// RecoverGroup returns every attempt of the group that has objects, so that a group whose history is lost rebuilds its
// Ledger from what exists. Retried until it succeeds; it never returns a part.
func (a *Activities) RecoverGroup(ctx context.Context, group string) ([]backend.Found, error) {
	ctx, _, stop := heartbeat(ctx)
	defer stop()
	found, err := a.Backend.List(ctx, group)
	if err != nil {
		return nil, wall(ctx, "", fmt.Errorf("list objects of group %s: %w", group, err))
	}
	return found, nil
}

// RecoveredProvider is what exists with a provider.
type RecoveredProvider struct {
	// Peering is ours when set; its credentials are those it was made with.
	Peering  *backend.Provider `json:"peering,omitempty"`
	Attempts []backend.Found   `json:"attempts,omitempty"`
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
	return out, nil
}
