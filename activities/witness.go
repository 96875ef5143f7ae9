package activities

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// witnessBound limits the time in which the other providers may answer.
const witnessBound = 7 * time.Second

// maxContacts is the maximum number of providers that are contacted concurrently.
const maxContacts = 50

// Witness finds out why providers are silent: they are dead, or this cluster is cut off from its network.
type Witness struct {
	Backend backend.Backend
	Catalog Catalog
	// Probe sends a request to a host that is outside this cluster and belongs to no provider. It returns nil when
	// the host answers. A nil Probe means that no such host is configured.
	Probe func(ctx context.Context) error
}

// Answers reports whether any provider answers this cluster. It contacts all offered or peered providers, except the
// providers in the list silent. If no other provider exists and this list contains only one provider, it uses the
// probe. The result contacted is false if there was neither another provider nor a probe.
func (w Witness) Answers(ctx context.Context, silent []string) (answers, contacted bool, err error) {
	peers, err := w.Backend.Peers(ctx, "")
	if err != nil {
		return false, false, err
	}
	bounded, cancel := context.WithTimeout(ctx, lookupBound)
	offers, _, err := w.Catalog.Offers(bounded)
	cancel()
	if err != nil {
		slog.WarnContext(ctx, "offers cannot be read; their providers are not asked whether they answer", "error", err)
	}
	for _, o := range offers {
		peers = append(peers, fleet.Provider{ID: o.Provider, Credentials: o.Credentials})
	}
	peers = slices.DeleteFunc(peers, func(p fleet.Provider) bool { return slices.Contains(silent, p.ID) })
	if len(peers) == 0 {
		probe := len(silent) == 1 && w.Probe != nil
		return probe && w.Probe(ctx) == nil, probe, nil
	}
	return w.anyAnswers(ctx, peers), true, nil
}

// anyAnswers contacts all providers concurrently and reports whether at least one answers.
func (w Witness) anyAnswers(ctx context.Context, providers []fleet.Provider) bool {
	bounded, cancel := context.WithTimeout(ctx, witnessBound)
	defer cancel()
	var answers atomic.Bool
	wait.ForAll(providers, maxContacts, func(_ int, p fleet.Provider) {
		if _, err := w.Backend.Identify(bounded, p.Credentials); err == nil {
			answers.Store(true)
			cancel()
		}
	})
	return answers.Load()
}
