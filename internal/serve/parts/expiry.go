package parts

import (
	"context"
	"log/slog"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
)

// Credentials that end within warnBefore are warned of, once in warnEvery.
const (
	warnBefore = 14 * 24 * time.Hour
	warnEvery  = 24 * time.Hour
)

// expiring is a backend whose credentials end.
type expiring interface{ CredentialsEnd() map[string]time.Time }

// ObserveExpiry shows when a backend's credentials end, and returns what warns of it until the context ends.
func (o *Observer) ObserveExpiry(b backend.Backend) (func(context.Context), error) {
	e, ok := b.(expiring)
	if !ok {
		return func(context.Context) {}, nil
	}
	err := metrics.NewExpiry(o.Registry, e.CredentialsEnd)
	return func(ctx context.Context) {
		warned := map[string]time.Time{}
		for {
			warnOfExpiry(o.log, e.CredentialsEnd(), warned, time.Now())
			if !wait.For(ctx, time.Minute) {
				return
			}
		}
	}, err
}

// warnOfExpiry writes a line for each provider whose credentials end soon, and remembers it in warned.
func warnOfExpiry(log *slog.Logger, ends, warned map[string]time.Time, now time.Time) {
	for provider, end := range ends {
		if end.Sub(now) > warnBefore || now.Sub(warned[provider]) < warnEvery {
			continue
		}
		warned[provider] = now
		log.Warn("credentials of a provider expire: run liqo-autoscaler provider-access renew, or ask it for new ones",
			"provider", provider, "end", end.UTC().Format(time.RFC3339))
	}
}
