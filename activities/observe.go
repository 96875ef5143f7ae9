package activities

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// observeBound is how long a look at a provider may take; one that has not answered by then is silent.
const observeBound = 7 * time.Second

// Observe looks at one provider. That it does not answer, or refuses our credentials, is evidence too; what only our
// own side is to blame for is none, and told as a message.
func (a *Activities) Observe(ctx context.Context, p fleet.Provider) (comparison.Evidence, error) {
	p = a.current(ctx, p)
	bounded, cancel := context.WithTimeout(ctx, observeBound)
	defer cancel()
	seen, err := a.Backend.Observe(bounded, p)
	e := comparison.Evidence{Provider: p.ID, Tenant: seen.Tenant, Absent: seen.Absent, Network: seen.Network,
		Here: seen.NetworkHere, Heard: seen.Heard, Quiet: seen.Quiet, Fault: seen.Fault,
		Message: shorten.To(seen.Message, maxError)}
	switch {
	case err == nil:
		e.Access = fleet.AccessGranted
		return e, nil
	case stopping(ctx) || ctx.Err() != nil:
		return comparison.Evidence{}, err
	case errors.Is(err, backend.ErrCredentials):
		e.Access = fleet.AccessRefused
	case errors.Is(err, backend.ErrUnreachable):
		e.Access = fleet.AccessSilent
	default:
		activity.GetLogger(ctx).Warn("provider cannot be checked", "provider", p.ID, "error", err)
	}
	e.Message = shorten.To(err.Error(), maxError)
	return e, nil
}

// Witness reports whether anybody but the providers named can be reached from here: another provider that is offered
// or peered with, or, when the one named is the only one, the probe.
func (a *Activities) Witness(ctx context.Context, silent []string) (bool, error) {
	answers, _, err := a.witness(ctx, silent)
	return answers, toApplicationError(ctx, "", err)
}

// witness also reports whether there is anybody to ask.
func (a *Activities) witness(ctx context.Context, silent []string) (answers, others bool, err error) {
	peers, err := a.Backend.Peers(ctx)
	if err != nil {
		return false, false, err
	}
	bounded, cancel := context.WithTimeout(ctx, catalogBound)
	offers, _, err := a.Catalog.Offers(bounded)
	cancel()
	if err != nil {
		activity.GetLogger(ctx).Warn("offers cannot be read; their providers are not asked whether they answer", "error",
			err)
	}
	for _, o := range offers {
		peers = append(peers, fleet.Provider{ID: o.Provider, Credentials: o.Credentials})
	}
	peers = slices.DeleteFunc(peers, func(p fleet.Provider) bool { return slices.Contains(silent, p.ID) })
	if len(peers) == 0 {
		probe := len(silent) == 1 && a.Probe != nil
		return probe && a.Probe(ctx) == nil, probe, nil
	}
	return a.anyAnswers(ctx, peers), true, nil
}

// anyAnswers asks all at once.
func (a *Activities) anyAnswers(ctx context.Context, providers []fleet.Provider) bool {
	bounded, cancel := context.WithTimeout(ctx, observeBound)
	defer cancel()
	var answers atomic.Bool
	wait.ForAll(providers, askAtOnce, func(_ int, p fleet.Provider) {
		if _, err := a.Backend.Identify(bounded, p.Credentials); err == nil {
			answers.Store(true)
			cancel()
		}
	})
	return answers.Load()
}

// askAtOnce bounds the providers that are asked at once.
const askAtOnce = 50
