package workflows

import (
	"errors"
	"slices"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// ScaleOut drives one instance from Pending to Ready or Failed. It tells its group before each acquire and at its end.
// An operator may cancel it: what the attempt made is then undone and the instance fails.
func ScaleOut(ctx workflow.Context, in fleet.DriverInput) error { return drive(ctx, in) }

// ScaleIn drives one instance from Draining to Released. It gives up waiting for pods after the drain budget and never
// gives up taking the slice back. Cancelled by an operator, it leaves the instance stuck, to be resumed by the next
// DeleteNodes or the signal "retry".
func ScaleIn(ctx workflow.Context, in fleet.DriverInput) error { return drive(ctx, in) }

// driver executes fleet.Driver: it hands over what happens and does what is decided.
type driver struct {
	*fleet.Driver
	// ctx is the workflow's own context, which an operator may cancel; out outlives that.
	ctx, out workflow.Context
	events   []fleet.DriverEvent
	found    activities.DiscoverOutput
	stop     workflow.CancelFunc // of the step under way
	alarm    alarm
	telling  int
	end      fleet.End
}

func drive(ctx workflow.Context, in fleet.DriverInput) error {
	out, _ := workflow.NewDisconnectedContext(ctx)
	d := &driver{Driver: fleet.NewDriver(in, workflow.Now(ctx)), ctx: ctx, out: out}
	orders, answers := workflow.GetSignalChannel(ctx, SignalOrder), workflow.GetSignalChannel(ctx, SignalAnswer)
	workflow.Go(ctx, func(g workflow.Context) {
		if g.Done().Receive(g, nil); errors.Is(g.Err(), workflow.ErrCanceled) {
			d.events = append(d.events, fleet.DriverEvent{Cancelled: true})
		}
	})
	onReset(out, func() { d.events = append(d.events, fleet.DriverEvent{Reset: true}) })
	d.do(d.Step(fleet.DriverEvent{}, workflow.Now(out)))
	for d.end == fleet.EndNone || d.telling > 0 {
		err := workflow.Await(out, func() bool {
			return len(d.events) > 0 || orders.Len() > 0 || answers.Len() > 0 || d.end != fleet.EndNone && d.telling == 0
		})
		if err != nil {
			return err
		}
		d.receive(orders, answers)
		d.handle()
	}
	switch {
	case d.end == fleet.EndFinal:
		return nil
	case ctx.Err() != nil:
		return temporal.NewCanceledError()
	default:
		return temporal.NewNonRetryableApplicationError("stopped by its group, or reset", "Stopped", nil)
	}
}

// handle steps through what happened, until the driver is at its end.
func (d *driver) handle() {
	events := d.events
	d.events = nil
	for _, ev := range events {
		if d.end == fleet.EndNone {
			d.do(d.Step(ev, workflow.Now(d.out)))
		}
	}
}

func (d *driver) receive(orders, answers workflow.ReceiveChannel) {
	for {
		var o fleet.Order
		if !orders.ReceiveAsync(&o) {
			break
		}
		d.events = append(d.events, fleet.DriverEvent{Order: &o})
	}
	for {
		var a fleet.Answer
		if !answers.ReceiveAsync(&a) {
			return
		}
		d.events = append(d.events, fleet.DriverEvent{Answer: &a})
	}
}

// do carries out what was decided.
func (d *driver) do(actions []fleet.DriverAction) {
	for _, a := range actions {
		if a.Timer > 0 {
			d.alarm.disarm()
			d.alarm.arm(d.out, workflow.Now(d.out).Add(a.Timer), func() {
				d.events = append(d.events, fleet.DriverEvent{Elapsed: true})
			})
		}
		if a.CancelStep && d.stop != nil {
			d.stop()
		}
		if a.Run != fleet.StepNone {
			d.alarm.disarm()
			d.run(a.Run)
		}
		d.tell(a)
		if a.End != fleet.EndNone {
			d.alarm.disarm()
			d.end = a.End
		}
	}
}

// tell delivers what no step tells: a view, an ask, a release. The driver ends only when all is delivered.
func (d *driver) tell(a fleet.DriverAction) {
	in := activities.TellInput{Group: d.Spec.ID, View: a.Tell}
	switch {
	case a.Ask:
		in.Provider, in.Holds = d.Instance.Provider(), []fleet.HoldRequest{activities.Acquire(&d.Instance)}
	case a.Release != nil:
		in.Provider = a.Release.Provider.ID
		in.Holds = []fleet.HoldRequest{{Kind: fleet.HoldRelease, Key: a.Release.ObjectName()}}
	case a.Tell == nil:
		return
	}
	d.telling++
	workflow.Go(d.out, func(ctx workflow.Context) {
		err := workflow.ExecuteActivity(short(ctx, LaneDrivers, "tell"), activities.NameTell, in).Get(ctx, nil)
		if err != nil {
			workflow.GetLogger(ctx).Error("tell", "instance", d.Instance.Name, "error", err)
		}
		d.telling--
	})
}

// run runs one step next to the loop; its end is an event.
func (d *driver) run(step fleet.Step) {
	number := d.Instance.Attempt
	ctx, cancel := workflow.WithCancel(d.out)
	d.stop = cancel
	view := d.View()
	workflow.Go(ctx, func(ctx workflow.Context) {
		ev := fleet.Event{Step: step, Attempt: number}
		d.outcome(&ev, d.activity(ctx, step, view, &ev))
		d.stop = nil
		d.events = append(d.events, fleet.DriverEvent{Ended: &ev})
	})
}

// activity runs the step's activity. The one that learns what the step brings tells it, too.
func (d *driver) activity(ctx workflow.Context, step fleet.Step, view fleet.View, ev *fleet.Event) error {
	i := d.Instance
	at := i.AttemptRef()
	switch step {
	case fleet.StepDiscover:
		in := activities.DiscoverInput{Spec: d.Spec, Instance: i.Name, Refused: i.Refused, Rank: d.rank(), Taken: d.Taken,
			Failures: d.Failures}
		d.found = activities.DiscoverOutput{}
		ctx = short(ctx, LaneDrivers, "discover offers for "+i.Name)
		return workflow.ExecuteActivity(ctx, activities.NameDiscover, in).Get(ctx, &d.found)
	case fleet.StepSelect:
		return d.choose(ctx, view, ev)
	case fleet.StepJoin:
		in := activities.JoinInput{View: view, Node: backend.NodeSpec{
			Attempt: at, Shape: d.Spec.Shape, Class: i.Offer.Class, Labels: d.Spec.NodeLabels(), Taints: d.Spec.NodeTaints(),
			Booking: fleet.Booking{Spec: d.Spec, BookedAt: i.BookedAt, Hourly: i.Offer.Hourly},
		}}
		ctx = join(ctx, "wait for virtual node "+at.ObjectName())
		return workflow.ExecuteActivity(ctx, activities.NameJoin, in).Get(ctx, nil)
	case fleet.StepDrain:
		ctx = pass(ctx, LaneRemoving, "drain "+at.ObjectName())
		in := activities.DrainInput{Attempt: at, Force: i.Force, Budget: d.Spec.Budgets.WithDefaults().Drain}
		return workflow.ExecuteActivity(ctx, activities.NameDrain, in).Get(ctx, nil)
	case fleet.StepReturn:
		ctx = pass(ctx, LaneRemoving, "return "+at.ObjectName()+" to "+at.Provider.ID)
		return workflow.ExecuteActivity(ctx, activities.NameReturn, activities.ReturnInput{Attempt: at, View: &view}).Get(ctx,
			nil)
	case fleet.StepNone, fleet.StepAcquire:
	}
	return nil
}

// choose selects from the shortlist, in the same task as the discovery's end.
func (d *driver) choose(ctx workflow.Context, view fleet.View, ev *fleet.Event) error {
	var out activities.SelectOutput
	in := activities.SelectInput{Spec: d.Spec, Found: d.found, Refused: slices.Clone(d.Instance.Refused), View: view}
	if err := workflow.ExecuteLocalActivity(local(ctx), activities.NameSelect, in).Get(ctx, &out); err != nil {
		return err
	}
	ev.Offer, ev.Failure = out.Offer, out.Failure
	switch {
	case out.Offer != nil:
		ev.Kind = fleet.Done
	case out.Decision.Full:
		ev.Kind = fleet.Again
	default:
		ev.Kind = fleet.Refused
	}
	if last := d.Instance.Failure; out.Offer == nil && last != nil && out.Failure != nil && !out.Decision.Full {
		text := last.Message + "; then " + out.Failure.Message // why no offer is left
		ev.Failure = fleet.NewFailure(last.Code, last.Provider, last.Stage, text)
	}
	return nil
}

func (d *driver) rank() fleet.Rank {
	_, number, _ := fleet.ParseInstanceName(d.Spec.ID, d.Instance.Name)
	return fleet.Rank{Ahead: d.Ahead, Name: d.Spec.ID, Number: number}
}

// outcome makes an event of a step's end. Only an answer of the activity's own code, typed, is a no of the provider.
func (d *driver) outcome(ev *fleet.Event, err error) {
	switch {
	case err == nil:
		if ev.Kind == "" {
			ev.Kind = fleet.Done
		}
	case temporal.IsCanceledError(err):
		ev.Kind = fleet.Cancelled
		ev.Failure = activities.FailureOf(err, d.Instance.Provider())
	default:
		ev.Kind, ev.Failure = activities.VerdictOf(err, d.Instance.Provider())
	}
}
