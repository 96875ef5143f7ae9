package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// NodeGroup owns one group's Ledger for ever. Its update handlers only book and publish; its loop starts the workflows
// that do the work, and never waits for their end. Cancelled by an operator it closes and leaves all nodes alone; the
// server's next Refresh starts it again, and it recovers.
func NodeGroup(ctx workflow.Context, in NodeGroupInput) error {
	g, err := newNodeGroup(ctx, in)
	if err != nil {
		return err
	}
	if in.State == nil {
		if err := g.recover(ctx); err != nil {
			return err
		}
	}
	g.ready = true
	g.publish(ctx)
	return g.loop(ctx)
}

type nodeGroup struct {
	id         string
	continueAt int
	ledger     *fleet.Ledger
	drivers    map[string]*Driver
	ready      bool // recovered: updates are admitted
	dirty      bool // there may be something to start
	reports    workflow.ReceiveChannel
	retry      workflow.ReceiveChannel
	facts      workflow.ReceiveChannel
	starts     []starting
	compare    comparer
	listing    *listing
}

// newNodeGroup restores the state before it sets the handlers, because handlers run before the main coroutine does.
func newNodeGroup(ctx workflow.Context, in NodeGroupInput) (*nodeGroup, error) {
	state, ledger := in.State, fleet.Ledger{}
	if state == nil {
		state, ledger = &GroupState{}, fleet.Ledger{Epoch: fleet.NewEpoch(workflow.Now(ctx))}
	} else {
		ledger = state.Ledger.Unpack()
	}
	g := &nodeGroup{
		id: in.Group, continueAt: in.ContinueAt, ledger: &ledger, drivers: state.Drivers, dirty: true,
		reports: workflow.GetSignalChannel(ctx, SignalReport), retry: workflow.GetSignalChannel(ctx, SignalRetry),
		facts: workflow.GetSignalChannel(ctx, SignalFact), listing: newListing(ctx),
	}
	if g.compare.next = state.NextLook; g.compare.next.IsZero() {
		g.compare.next = workflow.Now(ctx).Add(g.compareEvery())
	}
	if g.drivers == nil {
		g.drivers = map[string]*Driver{}
	}
	g.list(ctx)
	return g, g.handle(ctx)
}

func (g *nodeGroup) loop(ctx workflow.Context) error {
	for {
		if wasReset(ctx) {
			return continueAsNew(ctx, TypeNodeGroup, NodeGroupInput{Group: g.id, ContinueAt: g.continueAt})
		}
		g.drain(ctx)
		g.drive(ctx)
		g.look(ctx)
		if err := awaitUntil(ctx, g.nextTimer(), func() bool {
			return g.dirty || g.signalled() || (historyFull(ctx, g.continueAt) && !g.compare.looking) || wasReset(ctx)
		}); err != nil {
			return err
		}
		if wasReset(ctx) {
			continue
		}
		g.expire(ctx)
		if historyFull(ctx, g.continueAt) && g.idle() && workflow.AllHandlersFinished(ctx) {
			return continueAsNew(ctx, TypeNodeGroup, NodeGroupInput{
				Group: g.id, State: &GroupState{Ledger: g.ledger.Pack(), Drivers: g.drivers, NextLook: g.compare.next}, ContinueAt: g.continueAt,
			})
		}
	}
}

// idle tells whether nothing is under way that continue-as-new would lose.
func (g *nodeGroup) idle() bool {
	return !g.dirty && !g.compare.looking && !g.signalled()
}

func (g *nodeGroup) signalled() bool {
	return g.reports.Len() > 0 || g.retry.Len() > 0 || g.facts.Len() > 0
}

// continueAt is the history length at which entities continue as new by default; the server suggests it at 4,096.
const continueAt = 1000

// historyFull tells whether the history is long enough to start a new one.
func historyFull(ctx workflow.Context, limit int) bool {
	if limit <= 0 {
		limit = continueAt
	}
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > limit
}

// publish writes the snapshot to the memo, where the server reads it without a worker, and returns it.
func (g *nodeGroup) publish(ctx workflow.Context) fleet.Snapshot {
	g.ledger.Sweep(func(name string) bool { return g.drivers[name] != nil })
	s := g.ledger.Snapshot(workflow.Now(ctx))
	s.Group = g.id
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoSnapshot: s}); err != nil {
		workflow.GetLogger(ctx).Error("publish snapshot", "group", g.id, "error", err)
	}
	workflow.SetCurrentDetails(ctx, describeGroup(s))
	g.list(ctx)
	return s
}

func (g *nodeGroup) list(ctx workflow.Context) { g.listing.show(ctx, listed{group: g.id}) }

// expire releases failed instances that CA did not delete in time.
func (g *nodeGroup) expire(ctx workflow.Context) {
	now, changed := workflow.Now(ctx), false
	for i := range g.ledger.Instances {
		if inst := &g.ledger.Instances[i]; inst.Phase == fleet.Failed && !now.Before(inst.Since.Add(ttl(inst))) {
			g.apply(ctx, inst, fleet.Event{Kind: fleet.Expired})
			changed = true
		}
	}
	if changed {
		g.dirty = true
		g.publish(ctx)
	}
}

func ttl(inst *fleet.Instance) time.Duration {
	return inst.Spec.Budgets.WithDefaults().FailedTTL.Duration
}

// nextTimer is when the loop must look again by itself; zero when nothing is due.
func (g *nodeGroup) nextTimer() time.Time {
	var next time.Time
	sooner := func(due time.Time) {
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	for i := range g.ledger.Instances {
		inst := &g.ledger.Instances[i]
		if inst.Phase == fleet.Failed {
			sooner(inst.Since.Add(ttl(inst)))
		}
		if d := g.drivers[inst.Name]; d != nil {
			sooner(d.Check)
		}
	}
	if !g.compare.looking {
		sooner(g.compare.next)
	}
	return next
}

// recover rebuilds the Ledger from what exists, so that losing the history loses only what was not made yet.
func (g *nodeGroup) recover(ctx workflow.Context) error {
	var found []backend.Found
	if err := workflow.ExecuteActivity(forever(ctx, "recover group "+g.id), activities.NameRecoverGroup, g.id).Get(ctx, &found); err != nil {
		return fmt.Errorf("recover group %s: %w", g.id, err)
	}
	var leftovers []backend.Attempt
	g.ledger.Instances, leftovers = recovered(backend.Unpack(found), workflow.Now(ctx))
	for _, i := range g.ledger.Instances {
		if i.Phase.Shrinking() { // its scale-out may still run: that ends first
			g.drivers[i.Name] = &Driver{WorkflowID: ScaleOutID(i.Name), Check: workflow.Now(ctx).Add(checkDriver)}
		}
	}
	for _, at := range leftovers {
		if _, err := start(ctx, TypeUndo, UndoID(at.Instance, at.Number), "undo "+at.ObjectName(), UndoInput{Attempt: at}); err != nil {
			return fmt.Errorf("undo %s: %w", at.ObjectName(), err)
		}
	}
	if slices.ContainsFunc(found, held) { // of a scale-out that still runs, or of one that counted on the group to give it back
		g.hint(workflow.Now(ctx))
	}
	if n := len(g.ledger.Instances); n > 0 {
		workflow.GetLogger(ctx).Warn("group recovered from its objects", "group", g.id, "instances", n)
	}
	return g.outlastSecond(ctx)
}

// outlastSecond waits until the second is over that the epoch is named after. Nothing is booked before, so whoever
// terminates the group and starts it again at once does not get the same names from its next life (I2).
func (g *nodeGroup) outlastSecond(ctx workflow.Context) error {
	now := workflow.Now(ctx)
	if fleet.NewEpoch(now) != g.ledger.Epoch {
		return nil
	}
	rest := now.Truncate(time.Second).Add(time.Second).Sub(now)
	return workflow.NewTimerWithOptions(ctx, rest, workflow.TimerOptions{Summary: "until the epoch is unlike any other"}).Get(ctx, nil)
}
