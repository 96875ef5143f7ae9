package provider

import (
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// applyResult processes the result of a command.
func (p *State) applyResult(r fleet.Result, now time.Time) {
	done := p.Commands.Ended(r, now)
	if done == nil {
		return
	}
	switch {
	case done.Kind == fleet.CommandRecover:
		p.applyRecovery(r, now)
	case done.Kind == fleet.CommandRefusal:
		p.applyRefusalCheck(r, now)
	case done.Kind == fleet.CommandPeering, done.Kind == fleet.CommandUnpeering:
		p.applyStart(r, now)
	case done.Kind == fleet.CommandAnswer && r.Outcome == fleet.OutcomeNotRunning && p.Holds[done.Answer.Key].live():
		p.release(done.Answer.Key, now) // the hold's driver is closed and did not complete
	}
}

// applyStart processes the result of starting the phase's workflow.
func (p *State) applyStart(r fleet.Result, now time.Time) {
	switch {
	case r.Outcome == fleet.OutcomeDone:
		p.Started = p.Run
	case p.Started != p.Run: // an older run still exists and is about to end
		p.Checked = now.Add(fleet.Soon - restartRun)
	}
}

// applyRecovery rebuilds the holds and the phase from the existing objects. Requests that arrived during the recovery
// keep their holds.
func (p *State) applyRecovery(r fleet.Result, now time.Time) {
	p.Recovering = false
	p.Revision++
	p.rebuild(r.Found, now)
	p.recoverOffer(r)
	p.inherit(r.Cordoned, now)
	if r.Peering == nil && len(r.Found) == 0 {
		return
	}
	p.KeepUntil = now.Add(recoveredKeep)
	if r.Peering != nil && r.Peering.Refusing != nil && p.Refusing == nil {
		p.Refusing = r.Peering.Refusing
	}
	switch {
	case p.Phase == fleet.Absent && p.presentRefusal(now) != nil:
		p.enter(fleet.Refusing, "recovered", p.refusal(), now)
	case p.Phase == fleet.Absent && p.Live() > 0:
		p.enter(fleet.Established, "recovered", nil, now)
	case p.Phase == fleet.Absent:
		p.enter(fleet.Lingering, "recovered", nil, now)
	}
}

// recoverOffer builds an offer from the existing objects if the entity has none.
func (p *State) recoverOffer(r fleet.Result) {
	switch {
	case p.Offer != nil:
	case r.Peering != nil:
		p.Offer = &fleet.Offer{
			Name: p.ID, Provider: p.ID, Credentials: r.Peering.Credentials, LingerSeconds: r.LingerSeconds, Unpeer: r.Unpeer,
		}
	case len(r.Found) > 0: // the peering was made by another installation
		p.Offer = r.Found[0].Offer()
	}
}

// rebuild books a granted hold for every existing attempt without a hold.
func (p *State) rebuild(found []fleet.Found, now time.Time) {
	for _, f := range found {
		key := f.Attempt.ObjectName()
		if _, known := p.Holds[key]; known {
			continue
		}
		h := Hold{Key: key, State: fleet.HoldGranted, Since: now}
		if f.Booking != nil {
			h.Shape = f.Booking.Spec.Shape
		}
		p.set(h)
	}
}

// applyRound acts on the differences that two consecutive rounds report. Slices without a hold show that the history
// was reverted. A peering in phase Absent shows that its removal failed. In both cases the entity lists the existing
// objects again. applyRound also releases unused holds, and repairs the missing peering of a standby.
func (p *State) applyRound(d fleet.Differences, now time.Time) {
	if !d.Round.After(p.Round) {
		return
	}
	if d.Round.Follows(p.Round) {
		p.applyConfirmed(d, now)
	}
	if d.Round.Term != p.Round.Term {
		p.Revision++ // the new revision publishes the term
	}
	if d.Standing != nil {
		p.Standing = *d.Standing
		if !p.Standing.Network {
			p.NetworkTried = time.Time{}
		}
		p.Revision++
	}
	p.Round, p.Unheld, p.Unused, p.Remains, p.Unpeered = d.Round, d.Unheld, d.Unused, d.Remains, d.Unpeered
}

// repairStandby repairs the missing peering of a standby. (For a node, a step would detect the loss.) It waits for
// networkRetry between two repairs. Otherwise each round would repair a peering that another party has made, because
// our list of peerings never contains such a peering.
func (p *State) repairStandby(d fleet.Differences, now time.Time) {
	if d.Unpeered && p.Unpeered && p.Phase == fleet.Established && now.Sub(p.Since) >= networkRetry {
		p.Apply(fleet.PeeringBroken, nil, now)
	}
}

// applyConfirmed acts on the differences that both this round and the previous round report.
func (p *State) applyConfirmed(d fleet.Differences, now time.Time) {
	for _, key := range d.Unused {
		if h := p.Holds[key]; slices.Contains(p.Unused, key) && h.live() && h.Changed <= d.Revision {
			p.release(key, now)
			p.answerIfDecided(p.Holds[key]) // its driver may still wait, if the group has forgotten the driver
		}
	}
	p.repairStandby(d, now)
	unknown := d.Remains && p.Remains && p.Phase == fleet.Absent || slices.ContainsFunc(d.Unheld, func(key string) bool {
		return slices.Contains(p.Unheld, key) && p.Holds[key].State == ""
	})
	if unknown && !p.Recovering {
		p.Recovering = true
		p.Revision++
		p.Commands.Add(fleet.Command{Kind: fleet.CommandRecover})
	}
}
