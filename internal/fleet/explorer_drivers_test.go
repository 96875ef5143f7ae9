package fleet_test

import (
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
)

// driverRun runs a driver.Driver in the same way as workflows.drive.
type driverRun struct {
	d    *driver.Driver
	kind fleet.DriverKind
	// step is the id of the activity of the running step, and doing is the work of this activity. free is the result of
	// Discover.
	step    int
	doing   doer
	free    []string
	full    bool
	telling int
	end     fleet.End
	stopped bool // the driver has received a stop
}

// These are the requests that operators send to a driver.
type (
	cancelled struct{}
	reset     struct{}
)

func newDriver(kind fleet.DriverKind, in fleet.DriverInput, now time.Time) *driverRun {
	return &driverRun{d: driver.New(in, now), kind: kind}
}

func (d *driverRun) clone() actor {
	c, inner := *d, *d.d
	inner.Left, inner.Instance.Refused = slices.Clone(inner.Left), slices.Clone(inner.Instance.Refused)
	inner.Instance.Spec = &inner.Spec
	c.d = &inner
	return &c
}

func (d *driverRun) task(x *explorer, r *run, in []any) {
	if r.past = append(r.past, d.clone()); len(r.past) > 4 {
		r.past = r.past[1:]
	}
	if !r.timer.IsZero() && !x.now.Before(r.timer) {
		r.timer = time.Time{}
		in = append(in, driver.Event{Elapsed: true})
	}
	for _, m := range in {
		ev := driver.Event{}
		switch m := m.(type) {
		case driver.Event:
			ev = m
		case fleet.Order:
			ev.Order = &m
		case fleet.Answer:
			ev.Answer = &m
		case cancelled:
			ev.Cancelled = true
		case reset:
			ev.Reset = true
		case ended:
			if m.act != d.step {
				d.telling--
				continue
			}
			if offers, ok := m.result.(offers); ok {
				d.free, d.full = offers.free, offers.full
				m.result = fleet.Event{Kind: fleet.Done, Step: fleet.StepDiscover, Attempt: d.d.Instance.Attempt}
			}
			end := m.result.(fleet.Event)
			d.step, d.doing, ev.Ended = 0, nil, &end
		}
		if d.end == fleet.EndNone {
			was := d.d.Instance.Attempt
			d.stopped = d.stopped || ev.Order != nil && ev.Order.Stop && !ev.Order.Generation.Before(d.d.Generation)
			actions := d.d.Step(ev, x.now)
			x.checkDriver(d, was, ev, actions)
			d.do(x, r, actions)
		}
	}
	switch {
	case d.end == fleet.EndNone || d.telling > 0:
	case d.end == fleet.EndFinal && d.d.Instance.Phase == fleet.Failed && d.d.First:
		x.end(r, instanceFailed)
	case d.end == fleet.EndFinal:
		x.end(r, completed)
	default:
		x.end(r, failed)
	}
}

func (d *driverRun) do(x *explorer, r *run, actions []driver.Action) {
	for _, a := range actions {
		if a.Timer > 0 {
			r.timer = x.now.Add(a.Timer)
		}
		if a.CancelStep && d.step != 0 {
			x.cancelAct(d.step)
		}
		if a.Run != fleet.StepNone {
			r.timer = time.Time{}
			d.run(x, r, a.Run)
		}
		i := &d.d.Instance
		switch {
		case a.Resend:
			d.tell(x, r, tell{provider: i.Provider(), holds: []fleet.HoldRequest{x.acquire(i.Spec, i.AttemptRef(), i.Offer)}})
		case a.Release != nil:
			d.tell(x, r, tell{provider: a.Release.Provider.ID, holds: []fleet.HoldRequest{{Kind: fleet.HoldRelease,
				Key: a.Release.ObjectName()}}})
		case a.Report != nil:
			d.tell(x, r, tell{group: i.Spec.ID, view: a.Report})
		}
		if a.End != fleet.EndNone {
			r.timer, d.end = time.Time{}, a.End
		}
	}
}

func (d *driverRun) tell(x *explorer, r *run, t tell) {
	d.telling++
	x.schedule(r, &t)
}

func (d *driverRun) run(x *explorer, r *run, step fleet.Step) {
	view, at := d.d.View(), d.d.Instance.AttemptRef()
	ev := fleet.Event{Kind: fleet.Done, Step: step, Attempt: at.Number}
	switch step {
	case fleet.StepDiscover:
		d.doing = &discover{spec: d.d.Spec, refused: d.d.Instance.Refused}
	case fleet.StepSelect:
		d.doing = d.choose(x, view, ev)
	case fleet.StepJoin:
		d.doing = &join{at: at, booking: fleet.Booking{Spec: d.d.Spec, BookedAt: d.d.Instance.BookedAt}, view: view, ev: ev}
	case fleet.StepDrain:
		d.doing = &drain{at: at, ev: ev}
	case fleet.StepReturn:
		d.doing = &takeBack{at: at, view: &view, ev: ev}
	}
	d.step = x.schedule(r, d.doing)
}

// choose is the activity Select. It chooses from the result of Discover. Each try of the activity sends the choice
// again.
func (d *driverRun) choose(x *explorer, view fleet.View, ev fleet.Event) doer {
	if len(d.free) == 0 {
		if ev.Kind = fleet.Refused; d.full {
			ev.Kind = fleet.Again
		}
		ev.Failure = fleet.NewFailure(fleet.CodeNoOffer, "", "", "nothing fits")
		return &tell{result: ev}
	}
	ev.Offer = x.offer(d.free[x.rng.IntN(len(d.free))])
	chosen := view.Chosen(*ev.Offer)
	at := fleet.Attempt{Group: d.d.Spec.ID, Instance: view.Instance, Number: chosen.Attempt}
	holds := []fleet.HoldRequest{x.acquire(&d.d.Spec, at, ev.Offer)}
	return &tell{group: d.d.Spec.ID, view: &chosen, provider: ev.Offer.Provider, holds: holds, result: ev, local: true}
}

// undo runs in the same way as workflows.Undo. peering runs in the same way as workflows.Peering and
// workflows.Unpeering.
type undo struct {
	at    fleet.Attempt
	doing bool
}

func (u *undo) clone() actor { c := *u; return &c }

func (u *undo) task(x *explorer, r *run, in []any) {
	for _, m := range in {
		switch m.(type) {
		case ended:
			x.end(r, completed)
			return
		case cancelled:
			x.end(r, failed)
			return
		}
	}
	if !u.doing {
		u.doing = true
		x.schedule(r, &takeBack{at: u.at})
	}
}

type peering struct {
	in      fleet.PeeringInput
	removes bool
	step    int
	ending  bool
}

func (p *peering) clone() actor { c := *p; return &c }

func (p *peering) task(x *explorer, r *run, in []any) {
	if p.step == 0 {
		p.step = x.schedule(r, &repeer{in: p.in, removes: p.removes})
	}
	for _, m := range in {
		switch m := m.(type) {
		case cancelled, reset:
			x.cancelAct(p.step)
		case ended:
			report, failedNow := m.result.(*fleet.PeeringReport)
			switch {
			case p.ending && m.act != p.step:
				x.end(r, failed)
				return
			case failedNow:
				p.ending = true
				x.schedule(r, &tell{provider: p.in.Provider.ID, report: report})
			default:
				x.end(r, completed)
				return
			}
		}
	}
}
