package worker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// adoptEvery is Options.AdoptEvery when that does not say.
const adoptEvery = 5 * time.Minute

// adopt makes sure, now and every now and then, that every peering of ours has its provider entity: one that somebody
// terminated, or that Temporal lost, would otherwise leave its peering for ever. It blocks until the context ends.
func adopt(ctx context.Context, o Options, logger *slog.Logger) {
	every := o.AdoptEvery
	if every <= 0 {
		every = adoptEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if err := adoptAll(ctx, o, logger); err != nil && ctx.Err() == nil {
			logger.Warn("peerings of ours could not be looked through", "error", err, "retry", every)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func adoptAll(ctx context.Context, o Options, logger *slog.Logger) error {
	peers, err := o.Backend.Peers(ctx)
	if err != nil {
		return fmt.Errorf("list peerings: %w", err)
	}
	providers := flow.NewProviders(o.Temporal, o.Hub, o.TaskQueue)
	for _, p := range peers {
		started, err := providers.Ensure(ctx, p.ID)
		if err != nil {
			return err
		}
		if started {
			logger.Info("provider entity started for a peering that exists", "provider", p.ID)
		}
	}
	return nil
}
