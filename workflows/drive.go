package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// starting is a driver that was asked for and may not run yet.
type starting struct {
	instance string
	fresh    bool
	started  workflow.Future
}

// drive starts what is missing: the group's one decision, made anew from the Ledger each time.
func (g *nodeGroup) drive(ctx workflow.Context) {
	g.dirty = false
	changed := false
	var names []string // handlers may change the Ledger while this blocks
	for i := range g.ledger.Instances {
		names = append(names, g.ledger.Instances[i].Name)
	}
	for _, name := range names {
		if wasReset(ctx) { // telling one blocks
			break
		}
		changed = g.driveOne(ctx, name) || changed
	}
	if changed {
		g.publish(ctx)
	}
	g.awaitStarts(ctx)
}

func (g *nodeGroup) driveOne(ctx workflow.Context, name string) (changed bool) {
	inst, d := g.ledger.Find(name), g.drivers[name]
	if inst == nil {
		return false
	}
	growing := d != nil && d.WorkflowID == ScaleOutID(name) // by a scale-out, which must end before a scale-in starts
	switch {
	case growing && !d.LeaveSent && (inst.Leaving && inst.Phase.Growing() || inst.Phase.Shrinking()):
		d.LeaveSent = true
		if err := g.tell(ctx, d.WorkflowID, Leave{Undo: inst.Phase.Shrinking()}); err != nil {
			g.dirty = true
			if g.reports.Len() == 0 { // it is closed, and all it had to report has been applied: nobody drives the instance
				delete(g.drivers, name)
			} else {
				d.LeaveSent = false
			}
		}
		return false
	case d != nil && workflow.Now(ctx).Before(d.Check):
		return false
	case growing && inst.Phase.Shrinking(): // it was told and has not ended: tell it again
		d.LeaveSent, d.Check, g.dirty = false, workflow.Now(ctx).Add(checkDriver), true
		return false
	case d == nil && inst.Leaving && !inst.Phase.Shrinking() && inst.Phase != fleet.Released:
		g.apply(ctx, inst, fleet.Event{Kind: fleet.Leave})
		g.dirty = true
		return true
	case inst.Phase == fleet.Pending:
		g.apply(ctx, inst, fleet.Event{Kind: fleet.Done})
		g.launch(ctx, *inst)
		return true
	case inst.Phase.Growing(), inst.Phase.Shrinking() && inst.Stuck == "":
		g.launch(ctx, *inst)
	case d != nil: // it reported the end of its work but not its own: it was terminated
		delete(g.drivers, name)
		g.dirty = true
		return true
	}
	return false
}

// How often a driver is started once more although it should run: that is how one that was terminated is noticed and
// replaced. Right after a start that met an older run on its way out, sooner.
const (
	checkDriver = time.Minute
	checkSoon   = time.Second
)

// launch asks for the instance's driver to be started; awaitStarts waits for all of them at once.
func (g *nodeGroup) launch(ctx workflow.Context, inst fleet.Instance) {
	kind, id, summary := TypeScaleOut, ScaleOutID(inst.Name), "scale out "+inst.Name
	if inst.Phase.Shrinking() {
		kind, id, summary = TypeScaleIn, ScaleInID(inst.Name), "scale in "+inst.Name
	}
	d := g.drivers[inst.Name]
	fresh := d == nil || d.WorkflowID != id
	if fresh {
		d = &Driver{WorkflowID: id}
		g.drivers[inst.Name] = d
	}
	d.Check = workflow.Now(ctx).Add(checkDriver)
	out, _ := workflow.NewDisconnectedContext(ctx) // see start
	child := workflow.WithChildOptions(out, abandoned(ctx, id, summary))
	g.starts = append(g.starts, starting{inst.Name, fresh, workflow.ExecuteChildWorkflow(child, kind, DriveInput{Instance: inst}).GetChildWorkflowExecution()})
}

// awaitStarts returns once every driver asked for runs, so that none is lost to continue-as-new. One that cannot be
// started leaves its instance without a driver; the next look tries again.
func (g *nodeGroup) awaitStarts(ctx workflow.Context) {
	for _, s := range g.starts {
		err := s.started.Get(ctx, nil)
		switch d := g.drivers[s.instance]; {
		case err == nil || d == nil:
		case temporal.IsWorkflowExecutionAlreadyStartedError(err):
			if s.fresh {
				d.Check = workflow.Now(ctx).Add(checkSoon)
			}
		default:
			workflow.GetLogger(ctx).Error("start driver", "group", g.id, "instance", s.instance, "error", err)
			delete(g.drivers, s.instance)
		}
	}
	g.starts = nil
}

// tell has a scale-out leave its instance. An error means that it is closed.
func (g *nodeGroup) tell(ctx workflow.Context, workflowID string, leave Leave) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // so that an error means nothing else
	return workflow.SignalExternalWorkflow(ctx, here(ctx, workflowID), "", SignalLeave, leave).Get(ctx, nil)
}
