package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// engine is what scale-out and scale-in share: it holds the instance, runs a step under its bounds, applies the event to
// its own copy by the same table as the node group does, undoes what a move gives up, and reports.
type engine struct {
	inst fleet.Instance
	// ctx is the workflow's own context, which an operator may cancel; out outlives that.
	ctx, out workflow.Context
	from     string
	number   int
	leave    workflow.ReceiveChannel
	left     bool // CA asked the instance back
	disowned bool // the group takes nothing of the current attempt back
	canceled bool // an operator cancelled this workflow
	reset    bool // an operator reset this workflow: what it knows is of the past
	stop     func()
	listing  *listing
}

func newEngine(ctx workflow.Context, inst fleet.Instance) *engine {
	out, _ := workflow.NewDisconnectedContext(ctx)
	info := workflow.GetInfo(ctx)
	e := &engine{
		inst: inst, ctx: ctx, out: out, listing: newListing(ctx),
		from:  info.WorkflowExecution.ID + "/" + info.WorkflowExecution.RunID,
		leave: workflow.GetSignalChannel(ctx, SignalLeave),
		left:  inst.Leaving && inst.Phase.Growing(), // asked back before this run was started in place of a terminated one
	}
	e.list()
	onReset(out, func() {
		if e.reset = true; e.stop != nil {
			e.stop()
		}
	})
	return e
}

func (e *engine) list() {
	e.listing.show(e.out, listed{group: e.inst.Spec.ID, instance: e.inst.Name, provider: e.provider(), phase: string(e.inst.Phase)})
}

// run runs the current phase's step and says what happened. The step is cancelled, and its end awaited, when its bound
// or the instance's deadline passes, when CA asks the instance back, or when an operator cancels the workflow. A step
// that reached its end all the same is done, whatever came in between.
func (e *engine) run(summary string, do func(workflow.Context) (fleet.Event, error)) fleet.Event {
	name := e.inst.Phase.Row().Step
	var told Leave
	if e.inst.Phase.Growing() && e.leave.ReceiveAsync(&told) {
		e.leaving(told)
		return fleet.Event{}
	}
	limit, why := e.limit(name)
	ctx, cancel := workflow.WithCancel(e.ctx)
	defer cancel()
	e.stop = cancel
	stopTimer := e.watch(limit, why, cancel)
	ev, err := do(step(ctx, summary))
	stopTimer()
	ev.Step, ev.Attempt = name, e.inst.Attempt
	e.canceled = e.canceled || errors.Is(e.ctx.Err(), workflow.ErrCanceled)
	if e.reset {
		return fleet.Event{}
	}
	if err == nil {
		if ev.Kind == "" {
			ev.Kind = fleet.Done
		}
		return ev
	}
	ev.Failure = activities.FailureOf(err, e.provider())
	switch {
	case e.left:
		ev.Kind = "" // nothing to tell: the node group takes it from here
	case e.canceled:
		ev.Kind = fleet.Cancelled
		ev.Failure = fleet.NewFailure(fleet.CodeCancelled, e.provider(), ev.Failure.Stage, fmt.Sprintf("cancelled by an operator during %s; last: %s", name, ev.Failure.Message))
	case e.pastDeadline():
		ev.Kind = fleet.Deadline
	case nonRetryable(err):
		ev.Kind = fleet.Refused
	default:
		ev.Kind = fleet.GaveUp
	}
	return ev
}

// limit is how long the step may take: its own bound, or what is left of the instance's budget; 0 means no bound.
func (e *engine) limit(s fleet.Step) (time.Duration, string) {
	own := bound(s, e.inst.Spec.Budgets)
	if !e.inst.Phase.Growing() {
		return own, "step"
	}
	left := max(e.inst.Deadline().Sub(workflow.Now(e.ctx)), time.Millisecond)
	if left < own {
		return left, "deadline"
	}
	return own, "step"
}

// watch cancels the step on leave or when its time is up, until the returned function is called.
func (e *engine) watch(limit time.Duration, why string, cancel workflow.CancelFunc) func() {
	watching, stop := workflow.WithCancel(e.out)
	timeUp := false
	workflow.Go(watching, func(g workflow.Context) {
		sel := workflow.NewSelector(g)
		if limit > 0 {
			timer := workflow.NewTimerWithOptions(g, limit, workflow.TimerOptions{Summary: why + " bound"})
			sel.AddFuture(timer, func(f workflow.Future) { timeUp = f.Get(g, nil) == nil })
		}
		sel.AddReceive(e.leave, func(c workflow.ReceiveChannel, _ bool) {
			var told Leave
			c.Receive(g, &told)
			e.leaving(told)
		})
		sel.AddReceive(g.Done(), func(workflow.ReceiveChannel, bool) {})
		sel.Select(g)
		if timeUp || e.left {
			cancel()
		}
	})
	return stop
}

func (e *engine) leaving(told Leave) {
	e.left = true
	e.disowned = e.disowned || told.Undo
}

func (e *engine) pastDeadline() bool {
	return e.inst.Phase.Growing() && !workflow.Now(e.ctx).Before(e.inst.Deadline())
}

// apply moves the instance, undoes what the move gives up, and reports.
func (e *engine) apply(ev fleet.Event) error {
	if ev.Kind == "" {
		return nil
	}
	before, phase := attemptOf(e.inst), e.inst.Phase
	move, err := e.inst.Apply(ev, workflow.Now(e.ctx))
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), "Table", err)
	}
	logTransition(e.ctx, false, &e.inst, phase, ev, move)
	e.list()
	if move.Undo {
		if err := e.undo(UndoInput{Attempt: before}); err != nil {
			return err
		}
	}
	return e.report(Report{Event: ev})
}

// undo hands an attempt to a workflow of its own, which never gives up, and waits only until that has started.
func (e *engine) undo(in UndoInput) error {
	_, err := start(e.out, TypeUndo, UndoID(in.Attempt.Instance, in.Attempt.Number), "undo "+in.Attempt.ObjectName()+" on "+in.Attempt.Provider.ID, in)
	return err
}

// report tells the node group, and returns once the signal is in its history. A group that is gone is no error: what
// exists is found again when it recovers.
func (e *engine) report(r Report) error {
	e.number++
	r.Instance, r.From, r.Number = e.inst.Name, e.from, e.number
	err := workflow.SignalExternalWorkflow(e.out, here(e.out, NodeGroupID(e.inst.Spec.ID)), "", SignalReport, r).Get(e.out, nil)
	if err != nil {
		workflow.GetLogger(e.ctx).Warn("the node group does not take the report; it will find out by itself", "group", e.inst.Spec.ID, "instance", e.inst.Name, "error", err)
	}
	return nil
}

// close reports that this driver ends. A scale-out that its group has disowned has its attempt undone first; one that was
// reset leaves it to the group, which may have gone on with it.
func (e *engine) close() error {
	if e.disowned && !e.reset && (e.inst.Phase == fleet.Peering || e.inst.Phase == fleet.Joining) {
		if err := e.undo(UndoInput{Attempt: attemptOf(e.inst)}); err != nil {
			return err
		}
	}
	if err := e.report(Report{Closed: true}); err != nil {
		return err
	}
	if e.canceled {
		return temporal.NewCanceledError()
	}
	return nil
}

func nonRetryable(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.NonRetryable()
}
