package workflows

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Cluster is the UID of the consumer cluster for which a worker runs workflows. "" is an unknown cluster.
type Cluster string

// NodeGroup is the workflow that keeps one group's Ledger; it never completes on its own. Its update handlers only
// change the Ledger. Its loop starts the drivers that do the work, and never waits for their end. When an operator
// cancels the workflow, it ends and leaves all nodes unchanged. The server's next Refresh starts it again, and it
// recovers its state.
func (c Cluster) NodeGroup(ctx workflow.Context, in EntityInput) error {
	e := newEntity(ctx, in)
	g := &nodeGroup{
		ctx: ctx, entity: e, views: e.channel(SignalViews), facts: e.channel(SignalFacts),
		differences: e.channel(SignalDifferences), retry: e.channel(SignalRetry),
	}
	e.core = g
	if in.State == nil {
		g.ledger = fleet.NewLedger(in.Name, workflow.Now(ctx))
	} else {
		if err := fleet.Decode(in.State, &g.ledger); err != nil {
			return err
		}
		g.ledger.Restore()
	}
	for _, verb := range fleet.Verbs { // the SDK runs handlers before the main coroutine
		if err := g.handle(ctx, verb, c); err != nil {
			return err
		}
	}
	err := workflow.SetQueryHandlerWithOptions(ctx, QueryDays, func() ([]money.CostDay, error) {
		return g.ledger.CostDays, nil
	}, workflow.QueryHandlerOptions{Description: description(QueryDays)})
	if err != nil {
		return err
	}
	if err = e.run(); ctx.Err() != nil {
		g.sendBill()
	}
	return err
}

// closed returns the refusal of an operation that arrives while the group closes. The caller tries again, and thereby
// starts the group again.
func (g *nodeGroup) closed() error {
	return fleet.Refuse(fleet.RefusedNotInitialised, "group "+g.ledger.Group+" is being closed")
}

// sendBill sends the group's bill to the hub workflow, because an operator has cancelled the group. If the hub does
// not run, the bill is not lost, because the observer has saved it.
func (g *nodeGroup) sendBill() {
	if g.ledger.Recovering {
		return
	}
	ctx, end := workflow.NewDisconnectedContext(g.ctx)
	defer end()
	g.closing = true
	bills := []money.Bill{g.ledger.Bill(workflow.Now(ctx))}
	bills[0].Ended = true
	if bills[0].Cost.IsEmpty() && len(bills[0].Days) == 0 {
		return
	}
	if err := workflow.SignalExternalWorkflow(ctx, inHub(g.ctx, HubID), "", SignalBills, bills).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("the costs of a closed group cannot be handed to the hub; the observer does it later",
			"group", g.ledger.Group, "error", err)
	}
}

type nodeGroup struct {
	ctx                              workflow.Context
	entity                           *entity
	ledger                           *fleet.Ledger
	views, facts, differences, retry workflow.ReceiveChannel
	lastChoice                       fleet.Choice // the last choice that this run has published
	closing                          bool         // the group is sending its bill to the hub, and books nothing
}

// handle registers one operation as an update. If the update's validator refuses an operation, the history gets no
// event. The handler checks again, because validators do not run on replay, and two updates may be validated before
// either runs. Only the validator compares the caller's cluster with the worker's cluster, because the history does not
// contain the worker's cluster.
func (g *nodeGroup) handle(ctx workflow.Context, verb fleet.Verb, own Cluster) error {
	do := func(ctx workflow.Context, r fleet.Request) (fleet.Receipt, error) {
		now := workflow.Now(ctx)
		g.entity.woken = true
		if g.closing {
			return fleet.Receipt{}, refusal(ctx, g.closed())
		}
		if wasReset(ctx) {
			text := "group " + g.ledger.Group + " was reset and is being rebuilt from the objects that exist"
			return fleet.Receipt{}, refusal(ctx, fleet.Refuse(fleet.RefusedNotInitialised, text))
		}
		refused, err := g.ledger.OperateEach(verb, r, now)
		if err != nil {
			return fleet.Receipt{}, refusal(ctx, err)
		}
		receipt := g.ledger.Receipt(now) // publish writes the memo in the same task
		receipt.Refused = refused
		return receipt, nil
	}
	validate := func(ctx workflow.Context, r fleet.Request) error {
		if err := r.CheckCluster(string(own)); err != nil {
			return refusal(ctx, err)
		}
		if g.closing {
			return refusal(ctx, g.closed())
		}
		return refusal(ctx, g.ledger.Validate(verb, r, workflow.Now(ctx)))
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, string(verb), do,
		workflow.UpdateHandlerOptions{Validator: validate, Description: description(string(verb))})
}

// refusal converts a *fleet.Refusal to an application error of Temporal. The refusal's kind becomes the type of this
// error, and the workflow's time becomes its detail. Other errors stay unchanged.
func refusal(ctx workflow.Context, err error) error {
	var r *fleet.Refusal
	if errors.As(err, &r) {
		return temporal.NewNonRetryableApplicationError(r.Message, string(r.Kind), nil, workflow.Now(ctx))
	}
	return err
}

func (g *nodeGroup) receive(now time.Time) {
	in := fleet.GroupInput{Views: receiveAll[fleet.View](g.views), Facts: receiveAll[fleet.Fact](g.facts)}
	for g.retry.ReceiveAsync(nil) {
		in.Retry = true
	}
	if len(in.Views)+len(in.Facts) > 0 || in.Retry {
		g.apply(in, now)
	}
	receiveEach(g.differences, func(d *fleet.Differences) { g.apply(fleet.GroupInput{Differences: d}, now) })
}

func (g *nodeGroup) step(r *fleet.Result, now time.Time) { g.apply(fleet.GroupInput{Result: r}, now) }

func (g *nodeGroup) apply(in fleet.GroupInput, now time.Time) {
	g.ledger.Step(in, now)
	for _, t := range g.ledger.Transitions() {
		logTransition(g.ctx, g.ledger.Group, t)
	}
}

func (g *nodeGroup) commands() *fleet.Commands   { return &g.ledger.Commands }
func (g *nodeGroup) due(now time.Time) time.Time { return g.ledger.Due(now) }
func (g *nodeGroup) mayComplete(time.Time) bool  { return false }
func (g *nodeGroup) ready() bool                 { return !g.ledger.Recovering }
func (g *nodeGroup) revision() int64             { return g.ledger.Revision }
func (g *nodeGroup) state() any                  { return g.ledger }

// snapshot returns the memo with the group's snapshot. If this run has not yet published the group's newest choice,
// the memo also contains the choices.
func (g *nodeGroup) snapshot(now time.Time) (map[string]any, string) {
	s := g.ledger.Snapshot(now)
	memo := map[string]any{MemoSnapshot: s}
	if n := len(g.ledger.Choices); n > 0 && g.ledger.Choices[n-1] != g.lastChoice {
		g.lastChoice, memo[MemoChoices] = g.ledger.Choices[n-1], g.ledger.Choices
	}
	return memo, describeGroup(s)
}

func (g *nodeGroup) task(cmd fleet.Command) (activities.Task, bool) {
	t := activities.Task{ID: cmd.ID, Kind: cmd.Kind, Group: g.ledger.Group, Provider: cmd.Provider, Hold: cmd.Hold}
	switch cmd.Kind {
	case fleet.CommandStart:
		in := g.ledger.DriverInput(cmd)
		if in == nil {
			return t, false
		}
		t.Start = g.driver(cmd.Driver, in)
	case fleet.CommandUndo:
		t.Start = g.undo(*cmd.Attempt)
	case fleet.CommandOrder:
		t.Signal = &activities.Signal{ID: inHub(g.ctx, DriverID(cmd.Driver, cmd.Instance)), Name: SignalOrder,
			Order: cmd.Order}
	case fleet.CommandDescribe:
		t.Drivers = g.drivers(cmd)
	case fleet.CommandInspect:
		t.Instances = cmd.Instances
	case fleet.CommandStandby:
		t.Standby = g.ledger.StandbyQuestion()
		return t, t.Standby != nil
	case fleet.CommandSave:
		at := g.ledger.Position()
		t.Save = &at
	case fleet.CommandRecover, fleet.CommandHold:
	case fleet.CommandAnswer, fleet.CommandPeering, fleet.CommandUnpeering, fleet.CommandCancel,
		fleet.CommandRefusal:
		return t, false
	}
	return t, true
}

// driver returns the data with which an activity starts an instance's driver. Activities start drivers, undos and
// peerings in batches. They are never child workflows, because a child costs its parent events at every
// continue-as-new and every close. Peerings and undos may use a workflow id again at any time. A driver may use it
// again only after a failure.
func (g *nodeGroup) driver(kind fleet.DriverKind, in *fleet.DriverInput) *activities.Start {
	name := in.Instance.Name
	s := &activities.Start{
		Type: TypeScaleOut, ID: inHub(g.ctx, DriverID(kind, name)), Queue: queue(g.ctx, LaneDrivers), Driver: in,
		Once: in.First, Summary: "scale out " + name, Bound: forgottenAfter, Trace: in.Instance.Trace,
		Attributes: map[string]string{AttributeGroup: in.Spec.ID, AttributeInstance: name},
	}
	if kind == fleet.ScaleIn {
		s.Type, s.Summary, s.Bound = TypeScaleIn, "scale in "+name, 0
		s.Attributes[AttributeProvider] = in.Instance.Provider()
	}
	return s
}

func (g *nodeGroup) undo(at fleet.Attempt) *activities.Start {
	s := &activities.Start{
		Type: TypeUndo, ID: inHub(g.ctx, UndoID(at.Instance, at.Number)), Queue: queue(g.ctx, LaneDrivers),
		Undo: &fleet.UndoInput{Attempt: at}, Summary: "undo " + at.ObjectName() + " on " + at.Provider.ID, Again: true,
		Attributes: map[string]string{
			AttributeGroup: at.Group, AttributeInstance: at.Instance, AttributeProvider: at.Provider.ID,
		},
	}
	if e := g.ledger.Find(at.Instance); e != nil {
		s.Trace = e.Trace
	}
	return s
}

// drivers returns the workflows that a describe command examines. It omits drivers that have ended since the group
// made the command.
func (g *nodeGroup) drivers(cmd fleet.Command) (names []activities.DriverName) {
	for _, name := range cmd.Instances {
		if e := g.ledger.Find(name); e != nil && e.Driver.Kind != "" {
			id := inHub(g.ctx, DriverID(e.Driver.Kind, name))
			names = append(names, activities.DriverName{Instance: name, WorkflowID: id})
		}
	}
	return names
}
