package observer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These constants bound the checks of providers.
const (
	// concurrentChecks bounds the number of concurrent checks.
	concurrentChecks = 256
	// checkBound limits the check of one provider. A provider that has not answered within this time counts as silent.
	// checksBound limits all checks together. The round skips the providers that it cannot check within this time.
	checkBound  = 7 * time.Second
	checksBound = 20 * time.Second
	maxMessage  = 300 // characters of a provider's text
)

// inspect checks the watched providers concurrently. It starts with the providers that were not silent in the previous
// round. It returns the observations, and the providers that the round had no time to check.
func (o *Observer) inspect(ctx context.Context, last comparison.Outlook, watched []fleet.Provider,
	offers []fleet.Offer) (out comparison.Outlook, unseen map[string]bool) {
	out, unseen = comparison.Outlook{At: time.Now()}, map[string]bool{}
	silentLast := func(p fleet.Provider) int {
		if last.Of(p.ID).Access == fleet.AccessSilent {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(watched, func(a, b fleet.Provider) int { return silentLast(a) - silentLast(b) })
	all, cancel := context.WithTimeout(ctx, checksBound)
	defer cancel()
	var mu sync.Mutex
	wait.ForAll(watched, concurrentChecks, func(_ int, p fleet.Provider) {
		e, checked := o.inspectOne(all, withOffer(p, offers))
		mu.Lock()
		defer mu.Unlock()
		if e.Provider = p.ID; checked {
			out.Evidence = append(out.Evidence, e)
		} else {
			unseen[p.ID] = true
		}
	})
	slices.SortFunc(out.Evidence, comparison.Evidence.Compare)
	out.Isolated = o.isolated(ctx, out)
	return out, unseen
}

// inspectOne checks one provider. In the evidence, Access shows whether the provider answered and accepted our
// credentials; Access is empty after a failure on our side, which Message then describes. checked is false when the
// round had no time left.
func (o *Observer) inspectOne(ctx context.Context, p fleet.Provider) (e comparison.Evidence, checked bool) {
	bounded, cancel := context.WithTimeout(ctx, checkBound)
	defer cancel()
	seen, err := o.Backend.Observe(bounded, p)
	e = comparison.Evidence{Tenant: seen.Tenant, Absent: seen.Absent, Network: seen.Network, Here: seen.NetworkHere,
		Heard: seen.Heard, Quiet: seen.Quiet, Fault: seen.Fault, Message: shorten.Words(seen.Message, maxMessage)}
	switch {
	case err == nil:
		e.Access = fleet.AccessGranted
		return e, true
	case ctx.Err() != nil:
		return comparison.Evidence{}, false
	case errors.Is(err, backend.ErrCredentials):
		e.Access = fleet.AccessRefused
	case errors.Is(err, backend.ErrUnreachable):
		e.Access = fleet.AccessSilent
	default:
		o.Logger.Warn("cannot check a provider", "provider", p.ID, "error", err)
	}
	e.Message = shorten.Words(err.Error(), maxMessage)
	return e, true
}

// isolated reports whether this cluster is cut off: none of the checked providers answers, and Witness reaches no other
// party or fails.
func (o *Observer) isolated(ctx context.Context, seen comparison.Outlook) bool {
	if !seen.Silent() || seen.Answered() {
		return false
	}
	var silent []string
	for _, e := range seen.Evidence {
		silent = append(silent, e.Provider)
	}
	answers, err := o.Witness(ctx, silent)
	return err != nil || !answers
}

// withOffer returns the provider with the credentials that its offer names now, because an operator may have replaced
// the credentials with which the peering was made.
func withOffer(p fleet.Provider, offers []fleet.Offer) fleet.Provider {
	for n := range offers {
		if offers[n].Provider == p.ID {
			p.Credentials = offers[n].Credentials
		}
	}
	return p
}
