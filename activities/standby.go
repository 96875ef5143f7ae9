package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// rankStandby judges which providers a group could keep peered, by the offers as they are now.
func (a *Activities) rankStandby(ctx context.Context, q fleet.StandbyQuestion) ([]fleet.StandbyRow, error) {
	offers, _, err := a.Catalog.Offers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list offers: %w", err)
	}
	states := map[string]fleet.ProviderSnapshot{}
	for _, h := range q.Held { // what cannot be read says nothing of a hold
		states[h.Provider], err = a.Entities.Provider(ctx, h.Provider)
		if err != nil && !errors.Is(err, fleet.ErrNotRunning) {
			return nil, fmt.Errorf("read holds of provider %s: %w", h.Provider, err)
		}
	}
	all := make([]choice.Candidate, 0, len(offers))
	for _, o := range offers {
		state, known := states[o.Provider]
		if !known {
			if state, err = a.published(ctx, o.Provider); err != nil {
				return nil, err
			}
			states[o.Provider] = state
		}
		c := choice.CandidateOf(o, state)
		c.Own, c.Failures = held(state, q.Spec.ID), choice.Weight(q.Failures[o.Provider], a.now())
		all = append(all, c)
	}
	var peers []fleet.Provider
	if len(q.Held) < q.Standby {
		if peers, err = a.Backend.Peers(ctx); err != nil {
			return nil, fmt.Errorf("list peerings: %w", err)
		}
	}
	return choice.RankStandby(q, all, states, peers, a.now()), nil
}
