package operate

import (
	"context"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// readEnded reads the costs of ended groups repeatedly until ctx ends. After a failed read it keeps the costs of the
// last successful read.
func (w *watcher) readEnded(ctx context.Context) error {
	for wait.For(ctx, watchEnded) {
		if ended, err := w.endedGroups(ctx); err == nil {
			send(ctx, w.ended, ended)
		}
	}
	return nil
}

// balance returns the balance of the account of s. It uses s and the last snapshots of all other groups.
func (w *watcher) balance(s fleet.Snapshot) money.Balance {
	all := []fleet.Snapshot{s}
	for name, last := range w.last {
		if name != s.Group {
			all = append(all, last)
		}
	}
	for _, other := range w.accounts.shared {
		if _, followed := w.last[other.Group]; !followed && other.Group != s.Group {
			all = append(all, other)
		}
	}
	return s.Balance(all, w.accounts.ended, s.At)
}
