package parts

import (
	"context"
	"log/slog"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
)

// warnEvery is the minimum interval between two warnings about the same provider.
const warnEvery = 24 * time.Hour

// expiring is the interface of a backend whose credentials may expire.
type expiring interface {
	CredentialsLife() map[string]account.Life
}

// ObserveExpiry registers metrics about the expiry of a backend's credentials. It returns a function that logs
// warnings until its context ends.
func (o *Monitor) ObserveExpiry(b backend.Backend) (func(context.Context), error) {
	e, ok := b.(expiring)
	if !ok {
		return func(context.Context) {}, nil
	}
	err := metrics.NewExpiry(o.Registry, e.CredentialsLife)
	return func(ctx context.Context) {
		warned := map[string]time.Time{}
		for {
			warnOfExpiry(o.log, e.CredentialsLife(), warned, time.Now())
			if !wait.For(ctx, time.Minute) {
				return
			}
		}
	}, err
}

// warnOfExpiry logs a warning for each provider whose credentials should have been renewed, but for each provider at
// most once in warnEvery. It records the time of each warning in the map warned.
func warnOfExpiry(log *slog.Logger, lives map[string]account.Life, warned map[string]time.Time, now time.Time) {
	for provider, life := range lives {
		if now.Before(life.Late()) || now.Sub(warned[provider]) < warnEvery {
			continue
		}
		warned[provider] = now
		log.Warn("credentials of a provider expire: run liqo-autoscaler provider-access renew, or ask the provider's "+
			"administrators for new ones", "provider", provider, "end", life.End.UTC().Format(time.RFC3339))
	}
}
