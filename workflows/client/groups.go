package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Groups sends operations to the node groups. Every method blocks until the group has answered or the context ends. A
// *fleet.Refusal or fleet.ErrUnavailable means that the group changed nothing. fleet.ErrOutcomeUnknown means that the
// group may have executed the operation.
type Groups struct{ base }

// NewGroups returns the Groups of a hub. taskQueue is the argument of Hub.TaskQueue.
func NewGroups(t Temporal, hub workflows.Hub, taskQueue string) *Groups {
	return &Groups{newBase(t, hub, taskQueue)}
}

// OfCluster sets the UID of this process's consumer cluster. Each later operation contains the UID, and the workers of
// another cluster refuse the operation. OfCluster is safe for concurrent use.
func (g *Groups) OfCluster(uid string) { g.cluster.Store(&uid) }

// Configure applies a spec and stores the server's notice about it. It starts the group if the group does not run. It
// is idempotent.
func (g *Groups) Configure(ctx context.Context, spec fleet.GroupSpec, notice fleet.GroupNotice,
	seen fleet.Position) (fleet.Position, error) {
	r := fleet.Request{Spec: &spec, Notice: notice, Seen: seen}
	return g.do(ctx, spec.ID, fleet.Configure, r, g.entity(g.group(spec.ID), "node group "+spec.ID))
}

// Grow books delta instances, each with an hourly price of at most priceCap; 0 means no bound. Each call is a new
// operation: two calls book twice delta instances.
func (g *Groups) Grow(ctx context.Context, group string, delta int, priceCap float64,
	seen fleet.Position) (fleet.Position, error) {
	return g.do(ctx, group, fleet.Grow, fleet.Request{Delta: delta, PriceCap: priceCap, Seen: seen}, nil)
}

// Shrink releases up to delta instances that have no node yet.
func (g *Groups) Shrink(ctx context.Context, group string, delta int, seen fleet.Position) (fleet.Position, error) {
	return g.do(ctx, group, fleet.Shrink, fleet.Request{Delta: delta, Seen: seen}, nil)
}

// Release releases instances by name. It is idempotent for each instance.
func (g *Groups) Release(ctx context.Context, group string, names []string,
	seen fleet.Position) (fleet.Position, error) {
	at, _, err := g.ReleaseEach(ctx, group, []fleet.Call{g.NewCall(ctx, names)}, seen)
	return at, err // for a single call, err contains the refusal
}

// NewCall returns the release of the named instances as one operation. The caller of the operation stops waiting when
// the context ends.
func (g *Groups) NewCall(ctx context.Context, names []string) fleet.Call {
	return fleet.Call{Operation: g.newOperation(ctx), Names: names, Trace: traceOf(ctx)}
}

// ReleaseEach books calls in one update. For several calls, refused maps the index of each refused call to its
// refusal, and err concerns all calls. For a single call, err contains the refusal.
func (g *Groups) ReleaseEach(ctx context.Context, group string, calls []fleet.Call,
	seen fleet.Position) (at fleet.Position, refused map[int]fleet.Refusal, err error) {
	offset := g.offset.Load()
	receipt, err := g.send(ctx, group, fleet.Release, ofCalls(calls, seen), nil)
	expired := fleet.IsRefused(err, fleet.RefusedExpired)
	for _, why := range receipt.Refused {
		expired = expired || why.Kind == fleet.RefusedExpired
	}
	if expired && ctx.Err() == nil { // the clocks disagree, see do
		again := slices.Clone(calls)
		for n := range again {
			again[n].Operation.GiveUpAt = again[n].Operation.GiveUpAt.Add(time.Duration(g.offset.Load() - offset))
		}
		receipt, err = g.send(ctx, group, fleet.Release, ofCalls(again, seen), nil)
	}
	if err != nil {
		return fleet.Position{}, nil, fmt.Errorf("%s: %w", fleet.Release, err)
	}
	return receipt.Position, receipt.Refused, nil
}

// ofCalls returns the request for calls. A single call becomes a request for one operation, because the refusal of such
// a request adds no event to the history.
func ofCalls(calls []fleet.Call, seen fleet.Position) fleet.Request {
	if len(calls) != 1 {
		return fleet.Request{Seen: seen, Calls: calls}
	}
	one := calls[0]
	return fleet.Request{Seen: seen, Operation: one.Operation, Names: one.Names, Trace: one.Trace}
}

// Pause pauses or resumes a group. A paused group starts no instances. Pause is idempotent.
func (g *Groups) Pause(ctx context.Context, group string, paused bool) (fleet.Position, error) {
	return g.do(ctx, group, fleet.Pause, fleet.Request{Paused: paused}, nil)
}

// Snapshot reads the group's last published snapshot. It needs no worker and changes nothing.
func (g *Groups) Snapshot(ctx context.Context, group string) (fleet.Snapshot, error) {
	var s fleet.Snapshot
	if _, err := g.read(ctx, g.group(group), &s); err != nil {
		return fleet.Snapshot{}, err
	}
	return s, nil
}

// Costs reads the group's snapshot and the costs of its past days, oldest first. The days need a worker. Without a
// worker the error is fleet.ErrUnavailable, and the snapshot is returned nevertheless.
func (g *Groups) Costs(ctx context.Context, group string) (s fleet.Snapshot, days []money.CostDay, err error) {
	if s, err = g.Snapshot(ctx, group); err != nil {
		return s, nil, err
	}
	id := g.group(group)
	value, err := g.temporal.QueryWorkflow(withoutDeadline{ctx}, id, "", workflows.QueryDays)
	if err == nil {
		err = value.Get(&days)
	}
	if err != nil {
		return s, nil, fmt.Errorf("read the costs of past days of %s, which needs a worker: %w: %w", id,
			fleet.ErrUnavailable, err)
	}
	return s, days, nil
}

// Running lists the running groups of this hub, sorted. It may miss a group that started or ended a moment ago, because
// Temporal's index may be out of date. It needs no worker. Error: fleet.ErrUnavailable.
func (g *Groups) Running(ctx context.Context) ([]string, error) {
	return g.running(ctx, workflows.TypeNodeGroup, g.group(""))
}

// Close ends a group's entity and leaves all nodes unchanged. Configure starts the entity again. Close is idempotent.
// Error: fleet.ErrUnavailable.
func (g *Groups) Close(ctx context.Context, group string) error {
	id := g.group(group)
	err := g.temporal.CancelWorkflow(ctx, id, "")
	var notFound *serviceerror.NotFound
	if err != nil && !errors.As(err, &notFound) {
		return fmt.Errorf("close %s: %w: %w", id, fleet.ErrUnavailable, err)
	}
	return nil
}

// Unknown replaces the error of a group that does not run by an error that lists the running groups. It returns other
// errors unchanged. It reads Temporal's index, which may be seconds out of date.
func (g *Groups) Unknown(ctx context.Context, group string, err error) error {
	if !errors.Is(err, fleet.ErrNotRunning) {
		return err
	}
	running, unread := g.Running(ctx)
	switch {
	case unread != nil:
		return err
	case len(running) == 0:
		return fmt.Errorf("there is no node group %s in hub %s, nor any other", group, g.hub.Name())
	case len(running) > named:
		running = append(running[:named:named], fmt.Sprintf("and %d more", len(running)-named))
	}
	return fmt.Errorf("there is no node group %s in hub %s, which has %s", group, g.hub.Name(),
		strings.Join(running, ", "))
}

// named bounds the number of groups that an error lists.
const named = 20

// Choices reads the group's last decisions, oldest first. It has the same errors as Snapshot.
func (g *Groups) Choices(ctx context.Context, group string) (choices []fleet.Choice, err error) {
	id := g.group(group)
	memo, err := g.read(ctx, id, &fleet.Snapshot{})
	if payload := memo[workflows.MemoChoices]; err == nil && payload != nil {
		err = decodeOf(id, payload, &choices)
	}
	return choices, err
}

// do sends one operation. If the group refuses it as expired while the caller still waits, the clocks of this process
// and of the workflows differ. The refusal contains the time of the workflows' clock, so do sends the same operation
// once more with a corrected GiveUpAt.
func (g *Groups) do(ctx context.Context, group string, verb fleet.Verb, r fleet.Request,
	start *client.StartWorkflowOptions) (fleet.Position, error) {
	r.Operation, r.Trace = g.newOperation(ctx), traceOf(ctx)
	receipt, err := g.send(ctx, group, verb, r, start)
	if fleet.IsRefused(err, fleet.RefusedExpired) && ctx.Err() == nil {
		r.Operation.GiveUpAt = g.newOperation(ctx).GiveUpAt
		receipt, err = g.send(ctx, group, verb, r, start)
	}
	if err != nil {
		return fleet.Position{}, fmt.Errorf("%s: %w", verb, err)
	}
	return receipt.Position, nil
}

// send sends an operation once. It stores the difference between the clocks, which it computes from the time in the
// receipt.
func (g *Groups) send(ctx context.Context, group string, verb fleet.Verb, r fleet.Request,
	start *client.StartWorkflowOptions) (receipt fleet.Receipt, err error) {
	if uid := g.cluster.Load(); uid != nil {
		r.Cluster = *uid
	}
	err = g.update(ctx, group, verb, r, &receipt, start)
	if err != nil {
		return fleet.Receipt{}, err
	}
	g.recordClock(receipt.At)
	return receipt, nil
}

// update sends one update. While the group recovers, or its workflow task fails, update repeats it until the context
// ends. In both cases the group has changed nothing, and Temporal retries the task.
func (g *Groups) update(ctx context.Context, group string, verb fleet.Verb, r fleet.Request, out *fleet.Receipt,
	start *client.StartWorkflowOptions) error {
	id := g.group(group)
	for {
		err := g.fromTemporal(id, g.updateOnce(ctx, group, verb, r, out, start))
		recovering, fails := fleet.IsRefused(err, fleet.RefusedNotInitialised), errors.Is(err, errTaskFails)
		if !recovering && !fails {
			return err
		}
		select {
		case <-ctx.Done():
			if fails {
				return err
			}
			return fmt.Errorf("%s: %w: %w", id, fleet.ErrUnavailable, err)
		case <-time.After(retryInterval):
		}
	}
}

func (g *Groups) updateOnce(ctx context.Context, group string, verb fleet.Verb, r fleet.Request, out *fleet.Receipt,
	start *client.StartWorkflowOptions) error {
	options := client.UpdateWorkflowOptions{
		WorkflowID: g.group(group), UpdateName: string(verb), Args: []any{r},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	}
	var handle client.WorkflowUpdateHandle
	var err error
	if start != nil {
		startOperation := g.temporal.NewWithStartWorkflowOperation(*start, workflows.TypeNodeGroup,
			workflows.NewEntity(group))
		handle, err = g.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
			StartWorkflowOperation: startOperation, UpdateOptions: options,
		})
	} else {
		handle, err = g.temporal.UpdateWorkflow(ctx, options)
	}
	if err == nil {
		err = handle.Get(ctx, out)
	}
	return err
}
