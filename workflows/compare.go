package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// How often a group compares what is booked with what exists: while it has instances, while it has none, and at the
// least after a hint. Facts from watching only hasten it.
const (
	compareBusy = time.Minute
	compareIdle = 10 * time.Minute
	compareHint = 5 * time.Second
	// compareBound is how long one look may take; a look that fails changes nothing.
	compareBound = 30 * time.Second
)

// comparer looks beside the group's loop, so that a slow API server holds nothing up.
type comparer struct {
	next    time.Time // when the next look is due
	looking bool
}

// hint asks for a look soon.
func (g *nodeGroup) hint(now time.Time) {
	if soon := now.Add(compareHint); g.compare.next.After(soon) {
		g.compare.next = soon
	}
}

// look starts a look when one is due, and returns at once.
func (g *nodeGroup) look(ctx workflow.Context) {
	now := workflow.Now(ctx)
	if due := now.Add(g.compareEvery()); g.compare.next.After(due) {
		g.compare.next = due // there are instances again
	}
	if g.compare.looking || now.Before(g.compare.next) {
		return
	}
	g.compare.looking = true
	g.compare.next = now.Add(g.compareEvery())
	workflow.Go(ctx, func(ctx workflow.Context) {
		defer func() { g.compare.looking, g.dirty = false, true }()
		var found []backend.Found
		options := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			Summary: "compare with what exists", StartToCloseTimeout: compareBound, ScheduleToCloseTimeout: compareBound,
			HeartbeatTimeout: heartbeatTimeout, RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2},
		})
		if err := workflow.ExecuteActivity(options, activities.NameRecoverGroup, g.id).Get(ctx, &found); err != nil {
			workflow.GetLogger(ctx).Warn("what exists cannot be read; nothing is changed", "group", g.id, "error", err)
			return
		}
		if !wasReset(ctx) {
			g.compared(ctx, found, now)
		}
	})
}

func (g *nodeGroup) compareEvery() time.Duration {
	if len(g.ledger.Instances) == 0 {
		return compareIdle
	}
	return compareBusy
}

func (g *nodeGroup) compared(ctx workflow.Context, found []backend.Found, looked time.Time) {
	attempts := map[string]backend.Attempt{}
	seen := make([]fleet.Seen, 0, len(found))
	for _, f := range found {
		attempts[f.Attempt.ObjectName()] = f.Attempt
		seen = append(seen, seenOf(f))
	}
	orphans, changed := g.ledger.Compare(seen, looked, workflow.Now(ctx))
	if changed {
		g.publish(ctx)
	}
	if since := g.ledger.EmptySince; since != nil {
		workflow.GetLogger(ctx).Warn("nothing at all is found of several ready instances; that is believed only when it lasts",
			"group", g.id, "since", *since)
	}
	for _, o := range orphans {
		at := attempts[fleet.ObjectName(o.Instance, o.Attempt)]
		workflow.GetLogger(ctx).Warn("what has no booking is taken back", "group", g.id, "instance", o.Instance, "attempt", o.Attempt)
		if _, err := start(ctx, TypeUndo, UndoID(o.Instance, o.Attempt), "undo "+at.ObjectName(), UndoInput{Attempt: at}); err != nil {
			workflow.GetLogger(ctx).Error("start undo", "group", g.id, "instance", o.Instance, "error", err)
		}
	}
	g.lookAgain(workflow.Now(ctx))
}

// lookAgain brings the next look forward while a verdict needs a second one.
func (g *nodeGroup) lookAgain(now time.Time) {
	for i := range g.ledger.Instances {
		if inst := &g.ledger.Instances[i]; inst.Phase == fleet.Ready && inst.Missing > 0 {
			g.hint(now)
			return
		}
	}
	if due := now.Add(compareBusy); len(g.ledger.Unbooked) > 0 && g.compare.next.After(due) {
		g.compare.next = due
	}
}

// seenOf leaves out what is terminating: that is as good as gone.
func seenOf(f backend.Found) fleet.Seen {
	return fleet.Seen{
		Instance: f.Attempt.Instance, Attempt: f.Attempt.Number, Slice: f.Slice && !f.Leaving, Virtual: f.Virtual && !f.Leaving,
		Node: f.Node, Stamped: f.Stamped, Ready: f.Ready, Held: held(f), Unreadable: f.Slice && f.Booking == nil,
	}
}

// held tells whether all there is of an attempt is a hold on its provider.
func held(f backend.Found) bool { return !f.Slice && !f.Virtual && !f.Node }
