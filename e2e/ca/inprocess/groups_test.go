//go:build externalgrpc

package inprocess

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// groups implements the interface of the gRPC server on real ledgers, in the same way as Temporal's entities.
type groups struct {
	now func() time.Time

	mu     sync.Mutex
	by     map[string]*fleet.Ledger
	count  int
	wedged string // the group whose workflow tasks fail
	down   bool   // Temporal does not answer
	silent string // the group for which Temporal does not answer
}

func (g *groups) Configure(ctx context.Context, spec fleet.GroupSpec, notice fleet.GroupNotice,
	seen fleet.Position) (fleet.Position, error) {
	g.mu.Lock()
	wedged := g.wedged == spec.ID
	g.mu.Unlock()
	if wedged {
		<-ctx.Done()
		return fleet.Position{}, fmt.Errorf("%s: its workflow task fails (%w)", spec.ID, fleet.ErrUnavailable)
	}
	g.mu.Lock()
	if g.by[spec.ID] == nil {
		l := fleet.NewLedger(spec.ID, g.now().Add(-time.Minute))
		l.Step(fleet.GroupInput{Result: &fleet.Result{ID: l.Commands.Open[0].ID, Outcome: fleet.OutcomeDone}}, g.now())
		g.by[spec.ID] = l
	}
	g.mu.Unlock()
	return g.operate(fleet.Configure, spec.ID, fleet.Request{Spec: &spec, Notice: notice, Seen: seen})
}

func (g *groups) Grow(_ context.Context, id string, delta int, priceCap float64,
	seen fleet.Position) (fleet.Position, error) {
	return g.operate(fleet.Grow, id, fleet.Request{Delta: delta, PriceCap: priceCap, Seen: seen})
}

func (g *groups) Shrink(_ context.Context, id string, delta int, seen fleet.Position) (fleet.Position, error) {
	return g.operate(fleet.Shrink, id, fleet.Request{Delta: delta, Seen: seen})
}

func (g *groups) NewCall(_ context.Context, names []string) fleet.Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	return fleet.Call{Operation: g.operation(), Names: names}
}

func (g *groups) ReleaseEach(_ context.Context, id string, calls []fleet.Call,
	seen fleet.Position) (fleet.Position, map[int]fleet.Refusal, error) {
	receipt, err := g.operateEach(fleet.Release, id, fleet.Request{Calls: calls, Seen: seen})
	return receipt.Position, receipt.Refused, err
}

// operation returns a new operation. The caller holds the lock.
func (g *groups) operation() fleet.Operation {
	g.count++
	return fleet.Operation{ID: strconv.Itoa(g.count), GiveUpAt: g.now().Add(time.Minute)}
}

func (g *groups) operate(verb fleet.Verb, id string, r fleet.Request) (fleet.Position, error) {
	receipt, err := g.operateEach(verb, id, r)
	return receipt.Position, err
}

func (g *groups) operateEach(verb fleet.Verb, id string, r fleet.Request) (fleet.Receipt, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.by[id]
	if g.down || g.silent == id {
		return fleet.Receipt{}, fmt.Errorf("%s %s: %w: %w", verb, id, fleet.ErrTemporal, fleet.ErrUnavailable)
	}
	if l == nil {
		return fleet.Receipt{}, fmt.Errorf("%s %s: %w: %w", verb, id, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	r.Operation = g.operation()
	now := g.now()
	refused, err := l.OperateEach(verb, r, now)
	if err != nil {
		return fleet.Receipt{}, err
	}
	receipt := l.Receipt(now)
	receipt.Refused = refused
	return receipt, nil
}

func (g *groups) set(change func(*groups)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
}

func (g *groups) Snapshot(_ context.Context, id string) (fleet.Snapshot, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.down || g.silent == id {
		return fleet.Snapshot{}, fmt.Errorf("group %s: %w: %w", id, fleet.ErrTemporal, fleet.ErrUnavailable)
	}
	if l := g.by[id]; l != nil {
		return l.Snapshot(g.now()), nil
	}
	return fleet.Snapshot{}, fmt.Errorf("group %s: %w: %w", id, fleet.ErrNotRunning, fleet.ErrUnavailable)
}

func (g *groups) Running(context.Context) ([]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.by)), nil
}

func (g *groups) Close(_ context.Context, id string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.by, id)
	return nil
}
