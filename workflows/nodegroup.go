package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
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
}

// starting is a driver that was asked for and may not run yet.
type starting struct {
	instance string
	fresh    bool
	started  workflow.Future
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
		facts: workflow.GetSignalChannel(ctx, SignalFact),
	}
	g.compare.next = workflow.Now(ctx).Add(g.compareEvery())
	if g.drivers == nil {
		g.drivers = map[string]*Driver{}
	}
	return g, g.handle(ctx)
}

func (g *nodeGroup) loop(ctx workflow.Context) error {
	for {
		g.drain(ctx)
		g.drive(ctx)
		g.look(ctx)
		if err := awaitUntil(ctx, g.nextTimer(), func() bool {
			return g.dirty || g.signalled() || (historyFull(ctx, g.continueAt) && !g.compare.looking)
		}); err != nil {
			return err
		}
		g.expire(ctx)
		if historyFull(ctx, g.continueAt) && g.idle() && workflow.AllHandlersFinished(ctx) {
			return workflow.NewContinueAsNewError(ctx, TypeNodeGroup, NodeGroupInput{
				Group: g.id, State: &GroupState{Ledger: g.ledger.Pack(), Drivers: g.drivers}, ContinueAt: g.continueAt,
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
	return s
}

// drain applies every signal that has come.
func (g *nodeGroup) drain(ctx workflow.Context) {
	changed := false
	for {
		var r Report
		if !g.reports.ReceiveAsync(&r) {
			break
		}
		g.take(ctx, r)
		changed = true
	}
	for {
		var f fleet.Fact
		if !g.facts.ReceiveAsync(&f) {
			break
		}
		changed = g.learn(ctx, f) || changed
	}
	for g.retry.ReceiveAsync(nil) {
		for i := range g.ledger.Instances {
			g.ledger.Instances[i].Stuck = ""
		}
		changed = true
	}
	if changed {
		g.publish(ctx)
		g.dirty = true
	}
}

// take applies one report. A report of an instance the Ledger does not know is answered with "leave".
func (g *nodeGroup) take(ctx workflow.Context, r Report) {
	log := workflow.GetLogger(ctx)
	inst, d := g.ledger.Find(r.Instance), g.drivers[r.Instance]
	if inst == nil {
		log.Warn("report of an unknown instance", "group", g.id, "instance", r.Instance)
		g.disown(ctx, r)
		return
	}
	if d == nil || !strings.HasPrefix(r.From, d.WorkflowID+"/") {
		log.Warn("report of a workflow that does not drive the instance", "group", g.id, "instance", r.Instance, "from", r.From, "event", string(r.Event.Kind))
		g.disown(ctx, r)
		return
	}
	if d.From == r.From && r.Number <= d.Number {
		log.Warn("stale report", "group", g.id, "instance", r.Instance, "event", string(r.Event.Kind))
		return
	}
	d.From, d.Number = r.From, r.Number
	if r.Event.Kind != "" {
		g.apply(ctx, inst, r.Event)
	}
	if r.Closed {
		delete(g.drivers, r.Instance)
	}
}

// disown ends a scale-out that the group knows nothing of, or no longer: as after a recovery. What it has begun it has to
// undo itself, because of a mere hold nothing is to be found; what became of it otherwise the next look shows.
func (g *nodeGroup) disown(ctx workflow.Context, r Report) {
	g.hint(workflow.Now(ctx))
	if id := ScaleOutID(r.Instance); !r.Closed && strings.HasPrefix(r.From, id+"/") {
		_ = g.tell(ctx, id, Leave{Undo: true}) // one that is closed has nothing to leave
	}
}

// learn takes a fact from watching. That something is lost is a hint only: the group looks for itself.
func (g *nodeGroup) learn(ctx workflow.Context, f fleet.Fact) (changed bool) {
	inst := g.ledger.Find(f.Instance)
	if inst == nil || inst.Attempt != f.Attempt {
		return false
	}
	switch {
	case f.Kind == fleet.Lost:
		g.hint(workflow.Now(ctx))
	case f.Kind == fleet.Registered && (!inst.Registered || inst.NotReady), f.Kind == fleet.NotReady && !inst.NotReady:
		if f.Kind == fleet.NotReady {
			g.hint(workflow.Now(ctx))
		}
		g.apply(ctx, inst, fleet.Event{Kind: f.Kind})
		return true
	}
	return false
}

func (g *nodeGroup) apply(ctx workflow.Context, inst *fleet.Instance, ev fleet.Event) {
	from := inst.Phase
	move, err := inst.Apply(ev, workflow.Now(ctx))
	if err != nil {
		workflow.GetLogger(ctx).Warn("event not applied", "group", g.id, "instance", inst.Name, "error", err)
		return
	}
	logTransition(ctx, true, inst, from, ev, move)
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
	child := workflow.WithChildOptions(out, abandoned(id, summary))
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
	return workflow.SignalExternalWorkflow(ctx, workflowID, "", SignalLeave, leave).Get(ctx, nil)
}

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
	g.ledger.Instances, leftovers = recovered(found, workflow.Now(ctx))
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
	if n := len(g.ledger.Instances); n > 0 {
		workflow.GetLogger(ctx).Warn("group recovered from its objects", "group", g.id, "instances", n)
	}
	return nil
}
