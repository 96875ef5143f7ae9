package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
)

// activity runs the activity of one step to its end. The result of the step is Done unless the function sets another
// result in ev. Select, Join and Return produce a result that the group needs, so these activities also send the view
// to the group.
type activity func(ctx workflow.Context, d *driver.Driver, view fleet.View, ev *fleet.Event) error

// driverRun runs a driver.Driver in a workflow: it passes events to the driver and executes the driver's actions.
type driverRun struct {
	*driver.Driver
	// out is a context that stays valid when an operator cancels the workflow.
	out     workflow.Context
	steps   map[fleet.Step]activity
	events  []driver.Event
	stop    workflow.CancelFunc // cancels the step in progress
	alarm   alarm
	sending int
	end     fleet.End
}

// Outcome is the result of a driver's workflow: the instance's last phase and the reason. It is only for users; the
// group uses the driver's last view.
type Outcome struct {
	Phase fleet.Phase `json:"phase"`
	// Code and Message explain why the instance has failed or is stuck.
	Code     fleet.Code `json:"code,omitempty"`
	Provider string     `json:"provider,omitempty"`
	Message  string     `json:"message,omitempty"`
}

// TypeInstanceFailed is the error type with which the first scale-out of a failed instance closes after its last view
// was delivered. The status of the workflow is then Failed, so that users find it. The group treats the driver as
// completed.
const TypeInstanceFailed = "InstanceFailed"

func outcomeOf(i *fleet.Instance) Outcome {
	o := Outcome{Phase: i.Phase, Provider: i.Provider(), Message: i.Stuck}
	if f := i.Failure; f != nil && i.Phase != fleet.Ready {
		o.Code, o.Message = f.Code, f.Message
		if f.Provider != "" {
			o.Provider = f.Provider
		}
	}
	return o
}

// drive runs a driver until it ends. steps contains the steps that the driver may run. Errors: TypeInstanceFailed when
// the instance has failed; "Stopped" when the group stopped the driver or an operator reset the driver; a cancellation
// error when an operator cancelled it.
func drive(ctx workflow.Context, in fleet.DriverInput, steps map[fleet.Step]activity) (Outcome, error) {
	executor(ctx) // onReset needs this record before any other event
	out, _ := workflow.NewDisconnectedContext(ctx)
	d := &driverRun{Driver: driver.New(in, workflow.Now(ctx)), out: out, steps: steps}
	orders, answers := signalChannel(ctx, SignalOrder), signalChannel(ctx, SignalAnswer)
	workflow.Go(ctx, func(g workflow.Context) {
		if g.Done().Receive(g, nil); errors.Is(g.Err(), workflow.ErrCanceled) {
			d.events = append(d.events, driver.Event{Cancelled: true})
		}
	})
	onReset(out, func() { d.events = append(d.events, driver.Event{Reset: true}) })
	d.do(d.Step(driver.Event{}, workflow.Now(out)))
	for d.end == fleet.EndNone || d.sending > 0 {
		err := workflow.Await(out, func() bool {
			return len(d.events) > 0 || orders.Len() > 0 || answers.Len() > 0 || d.end != fleet.EndNone && d.sending == 0
		})
		if err != nil {
			return Outcome{}, err
		}
		receiveEach(orders, func(o *fleet.Order) { d.events = append(d.events, driver.Event{Order: o}) })
		receiveEach(answers, func(a *fleet.Answer) { d.events = append(d.events, driver.Event{Answer: a}) })
		d.handle()
	}
	return d.closed(ctx)
}

// closed returns the result of a driver that has ended.
func (d *driverRun) closed(ctx workflow.Context) (Outcome, error) {
	o := outcomeOf(&d.Instance)
	switch {
	case d.end == fleet.EndFinal && o.Phase == fleet.Failed && d.First:
		text := fmt.Sprintf("%s: %s", o.Code, o.Message)
		return o, temporal.NewNonRetryableApplicationError(text, TypeInstanceFailed, nil, o)
	case d.end == fleet.EndFinal:
		return o, nil
	case ctx.Err() != nil:
		return o, temporal.NewCanceledError(o)
	default:
		return o, temporal.NewNonRetryableApplicationError("stopped by its group, or reset", "Stopped", nil, o)
	}
}

// handle passes the collected events to the driver until the driver ends.
func (d *driverRun) handle() {
	events := d.events
	d.events = nil
	for _, ev := range events {
		if d.end == fleet.EndNone {
			d.do(d.Step(ev, workflow.Now(d.out)))
		}
	}
}

// do carries out the driver's actions.
func (d *driverRun) do(actions []driver.Action) {
	defer func() { workflow.SetCurrentDetails(d.out, describeDriver(d.Driver)) }()
	for _, a := range actions {
		if a.Timer > 0 {
			d.alarm.disarm()
			d.alarm.arm(d.out, workflow.Now(d.out).Add(a.Timer), func() {
				d.events = append(d.events, driver.Event{Elapsed: true})
			})
		}
		if a.CancelStep && d.stop != nil {
			d.stop()
		}
		if a.Run != fleet.StepNone {
			d.alarm.disarm()
			d.run(a.Run)
		}
		d.send(a)
		if a.End != fleet.EndNone {
			d.alarm.disarm()
			d.end = a.End
		}
	}
}

// send delivers the messages that no step delivers: a view, a repeated request, or a release. The driver ends only
// after all its messages are delivered.
func (d *driverRun) send(a driver.Action) {
	in := activities.ReportInput{Group: d.Spec.ID, View: a.Report}
	switch {
	case a.Resend:
		in.Provider, in.Holds = d.Instance.Provider(), []fleet.HoldRequest{activities.Acquire(&d.Instance)}
	case a.Release != nil:
		in.Provider = a.Release.Provider.ID
		in.Holds = []fleet.HoldRequest{{Kind: fleet.HoldRelease, Key: a.Release.ObjectName()}}
	case a.Report == nil:
		return
	}
	d.sending++
	workflow.Go(d.out, func(ctx workflow.Context) {
		if err := run(short(ctx, "tell"), activities.NameReport, in, nil); err != nil {
			workflow.GetLogger(ctx).Error("tell", "instance", d.Instance.Name, "error", err)
		}
		d.sending--
	})
}

// run starts one step concurrently with the loop. The loop receives the step's end as an event.
func (d *driverRun) run(step fleet.Step) {
	ev := fleet.Event{Kind: fleet.Done, Step: step, Attempt: d.Instance.Attempt}
	ctx, cancel := workflow.WithCancel(d.out)
	d.stop = cancel
	view := d.View()
	workflow.Go(ctx, func(ctx workflow.Context) {
		if err := d.steps[step](ctx, d.Driver, view, &ev); err != nil {
			ev.Kind, ev.Failure = activities.VerdictOf(err, d.Instance.Provider())
		}
		d.stop = nil
		d.events = append(d.events, driver.Event{Ended: &ev})
	})
}
