package derive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// restore adds the running derived groups to the list. It does this once, when InForce returns true for the first
// time. For each of these groups, the time Linger begins again.
func (g *Groups) restore(bases map[string]config.Base) {
	if g.restored || len(bases) == 0 {
		return
	}
	var running []fleet.GroupSpec
	if g.InForce != nil {
		specs, known := g.InForce()
		if !known {
			return
		}
		running = specs
	}
	g.restored = true
	now := g.now()
	for _, spec := range running {
		for _, base := range bases {
			if value := valueIn(base, spec); value != "" && base.IDOf(value) == spec.ID {
				g.listed[spec.ID] = &derived{id: spec.ID, base: base.ID, value: value, labels: labelsIn(base, spec),
					offeredAt: now}
			}
		}
	}
}

// valueIn returns the value for which the spec of a derived group was made: the provider's id or the label's value.
// It returns "" when the spec does not belong to the base.
func valueIn(base config.Base, spec fleet.GroupSpec) string {
	key, byLabel := base.Per.Label()
	if !byLabel {
		return spec.Provider
	}
	if spec.Selector == nil || spec.Provider != "" {
		return ""
	}
	return spec.Selector.MatchLabels[key]
}

// labelsIn returns the labels in the spec of a derived group that were copied from the group's offer.
func labelsIn(base config.Base, spec fleet.GroupSpec) map[string]string {
	labels := maps.Clone(spec.Labels)
	maps.DeleteFunc(labels, func(key, value string) bool { return base.Labels[key] == value })
	return labels
}

// Running lists the running groups, and reads their published snapshots.
type Running interface {
	Running(ctx context.Context) ([]string, error)
	Snapshot(ctx context.Context, group string) (fleet.Snapshot, error)
}

// These constants bound the duration and the concurrent reads of ReadInForce.
const (
	readTimeout = 10 * time.Second
	readAtOnce  = 16
)

// ReadInForce reads the specs of the running groups. It blocks for ten seconds at most. It skips a group that ends
// while ReadInForce runs. If a running group has not published a snapshot yet, the error is a *fleet.Refusal.
func ReadInForce(ctx context.Context, groups Running) ([]fleet.GroupSpec, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	ids, err := groups.Running(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the node groups that run: %w", err)
	}
	var mu sync.Mutex
	var specs []fleet.GroupSpec
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(readAtOnce)
	for _, id := range ids {
		readers.Go(func() error {
			snapshot, err := groups.Snapshot(ctx, id)
			if errors.Is(err, fleet.ErrNotRunning) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read node group %s: %w", id, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if snapshot.Spec != nil {
				specs = append(specs, *snapshot.Spec)
			}
			return nil
		})
	}
	return specs, readers.Wait()
}
