package activities

import (
	"context"
	"errors"
	"fmt"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// rankStandby ranks the providers that a group could keep peered, by the present offers.
func (a *Activities) rankStandby(ctx context.Context, q fleet.StandbyQuestion) ([]fleet.StandbyRow, error) {
	offers, _, err := a.Catalog.Offers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list offers: %w", err)
	}
	states := map[string]fleet.ProviderSnapshot{}
	for _, h := range q.Held { // an unreadable provider is an error, because its holds are unknown
		states[h.Provider], err = a.Entities.Provider(ctx, h.Provider)
		if err != nil && !errors.Is(err, fleet.ErrNotRunning) {
			return nil, fmt.Errorf("read holds of provider %s: %w", h.Provider, err)
		}
	}
	a.readUnknown(ctx, offers, states)
	all := make([]choice.Candidate, 0, len(offers))
	for _, o := range offers {
		state, known := states[o.Provider]
		if !known {
			state, _ = a.Entities.Remembered(o.Provider)
			states[o.Provider] = state
		}
		c := choice.CandidateOf(o, state)
		c.Own, c.Failures = held(state, q.Spec.ID), choice.Weight(q.Failures[o.Provider], a.now())
		all = append(all, c)
	}
	var peers []fleet.Provider
	if len(q.Held) < q.Standby {
		if peers, err = a.Backend.Peers(ctx, ""); err != nil {
			return nil, fmt.Errorf("list peerings: %w", err)
		}
	}
	return choice.RankStandby(q, all, states, peers, a.now()), nil
}

// These constants limit the reads for one ranking. At most maxRanked providers are read, and at most rankedAtOnce
// providers concurrently. Each read takes at most readBound.
const (
	maxRanked    = 100
	rankedAtOnce = 32
)

// readUnknown reads providers that have an offer, so that Entities remembers their states. It skips providers whose
// state the map known contains, and providers that were read less than recheckedAfter ago. A provider that does not
// answer, or is beyond the first maxRanked, is ranked by its last read state, or by its offer alone. Such a rank may
// be wrong: the provider itself decides when it receives the group's request.
func (a *Activities) readUnknown(ctx context.Context, offers []fleet.Offer, known map[string]fleet.ProviderSnapshot) {
	var next []string
	for _, o := range offers {
		_, is := known[o.Provider]
		if _, age := a.Entities.Remembered(o.Provider); !is && age > recheckedAfter && len(next) < maxRanked {
			next = append(next, o.Provider)
		}
	}
	wait.ForAll(next, rankedAtOnce, func(_ int, id string) {
		bounded, cancel := context.WithTimeout(ctx, readBound)
		defer cancel()
		_, _ = a.Entities.Provider(bounded, id)
	})
}
