package client

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Groups is the node groups. Every method blocks until the group has answered or the context ends. A *fleet.Refusal and
// fleet.ErrUnavailable changed nothing; fleet.ErrOutcomeUnknown may have.
type Groups struct{ base }

// NewGroups makes the Groups of a hub; the task queue is named as Hub.TaskQueue has it.
func NewGroups(t Temporal, hub workflows.Hub, taskQueue string) *Groups {
	return &Groups{newBase(t, hub, taskQueue)}
}

func (g *Groups) group(name string) (id string) { return g.hub.ID(workflows.NodeGroupID(name)) }

// Configure puts a spec in force and starts the group when it does not run. Idempotent.
func (g *Groups) Configure(ctx context.Context, spec fleet.GroupSpec) (fleet.Snapshot, error) {
	id := g.group(spec.ID)
	return g.do(ctx, spec.ID, workflows.UpdateConfigure, func(op fleet.Operation) any {
		return workflows.ConfigureRequest{Operation: op, Spec: spec}
	}, g.entity(id, "node group "+spec.ID))
}

// Grow books delta instances. Each call is one operation: two calls add twice.
func (g *Groups) Grow(ctx context.Context, group string, delta int) (fleet.Snapshot, error) {
	return g.do(ctx, group, workflows.UpdateGrow, func(op fleet.Operation) any {
		return workflows.SizeRequest{Operation: op, Delta: delta}
	}, nil)
}

// Shrink takes back up to delta instances that are still to come.
func (g *Groups) Shrink(ctx context.Context, group string, delta int) (fleet.Snapshot, error) {
	return g.do(ctx, group, workflows.UpdateShrink, func(op fleet.Operation) any {
		return workflows.SizeRequest{Operation: op, Delta: delta}
	}, nil)
}

// Release asks instances back by name. Idempotent per instance.
func (g *Groups) Release(ctx context.Context, group string, names []string) (fleet.Snapshot, error) {
	return g.do(ctx, group, workflows.UpdateRelease, func(op fleet.Operation) any {
		return workflows.ReleaseRequest{Operation: op, Names: names}
	}, nil)
}

// Snapshot reads the group's state as last published. Needs no worker, changes nothing.
func (g *Groups) Snapshot(ctx context.Context, group string) (fleet.Snapshot, error) {
	var s fleet.Snapshot
	if err := g.read(ctx, g.group(group), &s); err != nil {
		return fleet.Snapshot{}, err
	}
	return s, nil
}

// do sends one operation. A refusal because the caller gave up, while the caller is still there, means that the clocks
// disagree: the refusal told the workflows' time, so it is sent once more, as the same operation.
func (g *Groups) do(ctx context.Context, group, name string, request func(fleet.Operation) any, start *client.StartWorkflowOptions) (fleet.Snapshot, error) {
	op := g.operation(ctx)
	s, err := g.send(ctx, group, name, op, request, start)
	if fleet.IsRefused(err, fleet.RefusedExpired) && ctx.Err() == nil {
		op.GiveUpAt = g.operation(ctx).GiveUpAt
		s, err = g.send(ctx, group, name, op, request, start)
	}
	if err != nil {
		return fleet.Snapshot{}, fmt.Errorf("%s: %w", name, err)
	}
	g.seen(s.At)
	return s, nil
}

func (g *Groups) send(ctx context.Context, group, name string, op fleet.Operation, request func(fleet.Operation) any, start *client.StartWorkflowOptions) (fleet.Snapshot, error) {
	var s fleet.Snapshot
	err := g.update(ctx, g.group(group), name, "", request(op), &s, start, workflows.TypeNodeGroup, workflows.NodeGroupInput{Group: group})
	return s, err
}

// Fact tells the group what somebody who watches nodes saw. Idempotent. fleet.ErrUnavailable when the group does not run.
func (g *Groups) Fact(ctx context.Context, group string, fact fleet.Fact) error {
	id := g.group(group)
	return g.wall(id, g.temporal.SignalWorkflow(ctx, id, "", workflows.SignalFact, fact))
}
