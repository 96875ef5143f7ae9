package workflows

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// driverGrace is how long past its own bound peering/<id> may stay silent before it counts as failed: someone may have
// terminated it.
const driverGrace = time.Minute

// Provider owns one provider's holds and the phase of its peering for ever. Its update handlers only book and publish;
// its loop starts peering/<id> and unpeering/<id>, one at a time, and acts on their reports.
func Provider(ctx workflow.Context, in ProviderInput) error {
	p, err := newProvider(ctx, in)
	if err != nil {
		return err
	}
	if in.State == nil {
		if err := p.recover(ctx); err != nil {
			return err
		}
	}
	p.ready = true
	p.publish(ctx)
	return p.loop(ctx)
}

type provider struct {
	state      *fleet.ProviderState
	continueAt int
	ready      bool
	dirty      bool
	reports    workflow.ReceiveChannel
	broken     workflow.ReceiveChannel
	// driven is the phase whose driver was started; a phase entered anew starts its driver anew.
	driven fleet.PeeringPhase
	// started says that this phase's driver was started, and did not meet an older run on its way out.
	started bool
	// again is when the driver is started once more: soon while it meets an older run, and every now and then while
	// unpeering/<id> should run, because someone may have terminated it.
	again   time.Time
	listing *listing
}

func newProvider(ctx workflow.Context, in ProviderInput) (*provider, error) {
	state := in.State
	p := &provider{
		continueAt: in.ContinueAt, dirty: true, reports: workflow.GetSignalChannel(ctx, SignalReport), broken: workflow.GetSignalChannel(ctx, SignalBroken),
		listing: newListing(ctx),
	}
	if state == nil {
		fresh := fleet.NewProviderState(in.Provider, workflow.Now(ctx))
		p.state = &fresh
	} else {
		p.state, p.driven, p.started = state, state.Phase, !in.Starting // the driver outlived the run that started it
		p.schedule(ctx)
	}
	p.list(ctx)
	return p, p.handle(ctx)
}

func (p *provider) loop(ctx workflow.Context) error {
	for {
		if wasReset(ctx) {
			return continueAsNew(ctx, TypeProvider, ProviderInput{Provider: p.state.ID, ContinueAt: p.continueAt})
		}
		p.drain(ctx)
		p.drive(ctx)
		if err := awaitUntil(ctx, p.nextTimer(), func() bool {
			return p.dirty || p.reports.Len() > 0 || p.broken.Len() > 0 || historyFull(ctx, p.continueAt) || wasReset(ctx)
		}); err != nil {
			return err
		}
		if wasReset(ctx) {
			continue
		}
		p.elapse(ctx)
		if historyFull(ctx, p.continueAt) && p.reports.Len() == 0 && p.broken.Len() == 0 && !p.dirty && workflow.AllHandlersFinished(ctx) {
			return continueAsNew(ctx, TypeProvider, ProviderInput{
				Provider: p.state.ID, State: p.state, ContinueAt: p.continueAt, Starting: !p.started,
			})
		}
	}
}

func (p *provider) publish(ctx workflow.Context) {
	p.state.Sweep(workflow.Now(ctx))
	p.state.Sequence++
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoSnapshot: *p.state}); err != nil {
		workflow.GetLogger(ctx).Error("publish state", "provider", p.state.ID, "error", err)
	}
	workflow.SetCurrentDetails(ctx, describeProvider(*p.state))
	p.list(ctx)
}

func (p *provider) list(ctx workflow.Context) {
	p.listing.show(ctx, listed{provider: p.state.ID, phase: string(p.state.Phase)})
}

func (p *provider) apply(ctx workflow.Context, ev fleet.PeeringEvent, why *fleet.Failure) {
	from := p.state.Phase
	if m := p.state.Apply(ev, why, workflow.Now(ctx)); m.Ignored {
		return
	}
	p.moved(from)
	p.dirty = true
	logPeering(ctx, p.state, from, ev, why)
	p.publish(ctx)
}

// moved makes a phase entered anew start its driver anew; what an earlier phase's driver still reports is stale from here.
func (p *provider) moved(from fleet.PeeringPhase) {
	if p.state.Phase == from {
		return
	}
	p.driven, p.started, p.again = "", false, time.Time{}
	p.state.Run++
}

// drain applies every signal that has come.
func (p *provider) drain(ctx workflow.Context) {
	for {
		var r PeeringReport
		if !p.reports.ReceiveAsync(&r) {
			break
		}
		if r.Run == p.state.Run {
			p.apply(ctx, r.Event, r.Failure)
		}
	}
	for p.broken.ReceiveAsync(nil) {
		p.apply(ctx, fleet.PeeringBroken, nil)
	}
}

// drive starts the phase's driver on entry into the phase, and once more when again is due.
func (p *provider) drive(ctx workflow.Context) {
	p.dirty = false
	phase := p.state.Phase
	driver := phase.Row().Driver
	if driver == fleet.DriverNone || p.state.Offer == nil || (p.driven == phase && (p.again.IsZero() || workflow.Now(ctx).Before(p.again))) {
		return
	}
	p.driven, p.again = phase, time.Time{}
	id := p.state.ID
	in := PeeringInput{Provider: backend.Provider{ID: id, Credentials: p.state.Offer.Credentials}, Run: p.state.Run, Phase: phase}
	var already bool
	var err error
	if driver == fleet.DriverPeering {
		already, err = start(ctx, TypePeering, PeeringID(id), "peer with "+id, in)
	} else {
		already, err = start(ctx, TypeUnpeering, UnpeeringID(id), "remove the peering with "+id, in)
	}
	p.started = p.started || !already
	p.schedule(ctx)
	if err != nil {
		workflow.GetLogger(ctx).Error("start driver", "provider", id, "driver", string(driver), "error", err)
		p.apply(ctx, fleet.PeeringFailed, fleet.NewFailure(fleet.CodeInternal, id, "", "start "+string(driver)+": "+err.Error()))
	}
}

// schedule says when the driver is started once more.
func (p *provider) schedule(ctx workflow.Context) {
	switch driver := p.state.Phase.Row().Driver; {
	case driver == fleet.DriverNone:
	case !p.started:
		p.again = workflow.Now(ctx).Add(checkSoon)
	case driver == fleet.DriverUnpeering: // peering/<id> has a bound of its own
		p.again = workflow.Now(ctx).Add(checkDriver)
	}
}

// nextTimer is when the loop must look again by itself; zero when nothing is due.
func (p *provider) nextTimer() time.Time {
	due := p.phaseTimer()
	if due.IsZero() || (!p.again.IsZero() && p.again.Before(due)) {
		return p.again
	}
	return due
}

// phaseTimer is when the phase's time is over, or its driver is overdue; zero when neither can be.
func (p *provider) phaseTimer() time.Time {
	if p.state.Phase.Row().Driver == fleet.DriverPeering {
		return p.state.Since.Add(establishBound + driverGrace)
	}
	return p.state.NextTimer()
}

func (p *provider) elapse(ctx workflow.Context) {
	now := workflow.Now(ctx)
	if !p.again.IsZero() && !now.Before(p.again) {
		p.dirty = true
	}
	if due := p.phaseTimer(); due.IsZero() || now.Before(due) {
		return
	}
	if p.state.Phase.Row().Driver != fleet.DriverPeering {
		p.apply(ctx, fleet.PeeringElapsed, nil)
		return
	}
	id := p.state.ID
	if err := workflow.RequestCancelExternalWorkflow(ctx, here(ctx, PeeringID(id)), "").Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("cancel a silent peering", "provider", id, "error", err)
	}
	p.apply(ctx, fleet.PeeringFailed, fleet.NewFailure(fleet.CodeTimeout, id, "", fmt.Sprintf("%s has not reported for %s", here(ctx, PeeringID(id)), establishBound+driverGrace)))
}

func (p *provider) handle(ctx workflow.Context) error {
	if err := setUpdate(ctx, UpdateAcquire, func(_ workflow.Context, in AcquireRequest) error { return p.check(in.Key) }, p.acquire); err != nil {
		return err
	}
	return setUpdate(ctx, UpdateRelease, func(_ workflow.Context, in HoldRequest) error { return p.check(in.Key) }, p.release)
}

func (p *provider) check(key string) error {
	switch {
	case !p.ready:
		return fleet.Refuse(fleet.RefusedNotInitialised, "provider "+p.state.ID+" is recovering from what exists")
	case key == "":
		return fleet.Refuse(fleet.RefusedInvalid, "hold without key")
	}
	return nil
}

// wasReset is as for a node group.
func (p *provider) wasReset(ctx workflow.Context) error {
	if !wasReset(ctx) {
		return nil
	}
	p.dirty = true
	return fleet.Refuse(fleet.RefusedNotInitialised, "provider "+p.state.ID+" was reset and begins anew from what exists")
}

// acquire books a hold; the answer may be to wait.
func (p *provider) acquire(ctx workflow.Context, in AcquireRequest) (fleet.Hold, error) {
	if err := errors.Join(p.wasReset(ctx), p.check(in.Key)); err != nil {
		return fleet.Hold{}, refusal(ctx, err)
	}
	from := p.state.Phase
	h := p.state.Acquire(in.Key, in.Shape, in.Offer, workflow.Now(ctx))
	logPeering(ctx, p.state, from, fleet.PeeringAcquired, nil)
	p.changed(ctx, from)
	return h, nil
}

// release gives a hold back, and remembers that.
func (p *provider) release(ctx workflow.Context, in HoldRequest) (fleet.Hold, error) {
	if err := errors.Join(p.wasReset(ctx), p.check(in.Key)); err != nil {
		return fleet.Hold{}, refusal(ctx, err)
	}
	from := p.state.Phase
	p.state.Release(in.Key, workflow.Now(ctx))
	logPeering(ctx, p.state, from, fleet.PeeringEmptied, nil)
	p.changed(ctx, from)
	return p.state.Holds[in.Key], nil
}

func (p *provider) changed(ctx workflow.Context, from fleet.PeeringPhase) {
	p.moved(from)
	p.dirty = true
	p.publish(ctx)
}
