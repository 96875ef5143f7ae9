package provider

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// These times govern a peering's life.
const (
	tombstoneTTL = time.Hour
	coolOffFirst = 15 * time.Second
	coolOffMax   = 10 * time.Minute
	removalWait  = 60 * time.Second // the time for which an acquire waits for a removal in progress
	inUseRetry   = 5 * time.Minute
	removalRetry = time.Minute
	// networkRetry is the pause between two repairs of a network that does not work.
	networkRetry = 10 * time.Minute
	// restartRun is the interval at which peering/<id> or unpeering/<id> is started again in case it was terminated.
	// The workflow itself decides when it fails. The time that it waits in our queues does not count.
	restartRun = time.Minute
	// recoveredKeep is the time during which a recovered provider removes nothing, because holds may still be missing.
	recoveredKeep = 5 * time.Minute
)

// elapse applies PeeringElapsed when the phase's time has expired.
func (p *State) elapse(now time.Time) {
	due := p.phaseEnd()
	if due.IsZero() || now.Before(due) {
		return
	}
	p.Apply(fleet.PeeringElapsed, nil, now)
}

// coolOff returns the pause of a provider after a failed peering. The pause doubles with each consecutive failure.
func (p *State) coolOff() time.Duration {
	if !p.rests() {
		return 0
	}
	d := coolOffFirst
	for range min(p.Failures-1, 6) {
		d *= 2
	}
	return min(d, coolOffMax)
}

// phaseEnd returns the time at which the phase expires. It returns zero when the phase does not expire.
func (p *State) phaseEnd() time.Time {
	switch p.Phase {
	case fleet.CoolOff:
		return p.Since.Add(p.coolOff())
	case fleet.Lingering:
		linger := fleet.DefaultLinger
		if p.Offer != nil {
			if p.Offer.Unpeer == fleet.UnpeerNever {
				return time.Time{}
			}
			linger = p.Offer.Linger()
		}
		if due := p.Since.Add(linger); due.After(p.KeepUntil) {
			return due
		}
		return p.KeepUntil
	case fleet.Removing:
		if first := p.firstWaiting(); !first.IsZero() {
			return first.Add(removalWait)
		}
	case fleet.Refusing:
		if p.Refusing != nil {
			return p.Refusing.Until
		}
	case fleet.Absent, fleet.Establishing, fleet.Compensating, fleet.Established, fleet.Repairing:
	}
	return time.Time{}
}

func (p *State) firstWaiting() (first time.Time) {
	for _, h := range p.Holds {
		if h.State == fleet.HoldWaiting {
			first = fleet.Earlier(first, h.Since)
		}
	}
	return first
}

// Due returns the time at which the caller must call Step even if nothing else happens. It returns zero for never.
func (p *State) Due(now time.Time) time.Time {
	next := p.Commands.Due(now)
	if p.Recovering {
		return next
	}
	if p.Phase.Row().Runs != "" && !p.Checked.IsZero() && !p.starting() {
		next = fleet.Earlier(next, p.restart())
	}
	return fleet.Earlier(fleet.Earlier(fleet.Earlier(next, p.refusalCheckDue()), p.phaseEnd()), p.networkDue())
}

// repairNetwork starts the repair of a network that does not work. The repair is the same as for a broken peering: it
// creates missing objects and adopts changes that the provider has made.
func (p *State) repairNetwork(now time.Time) {
	if due := p.networkDue(); !due.IsZero() && !now.Before(due) {
		p.NetworkTried = now
		p.Apply(fleet.PeeringBroken, nil, now)
	}
}

// networkDue returns the time of the next repair of the network. It returns zero for never.
func (p *State) networkDue() time.Time {
	switch {
	case !p.Standing.Network || p.Phase != fleet.Established && p.Phase != fleet.Lingering:
		return time.Time{}
	case p.NetworkTried.IsZero():
		return p.Since
	case p.Phase == fleet.Lingering && !p.isKept(): // the peering is removed soon
		return time.Time{}
	default:
		return p.NetworkTried.Add(networkRetry)
	}
}

// Over reports whether the workflow may close: the provider has no holds, no peering, no open commands and no cordon,
// and has been in phase Absent for a day. A later round of the observer or acquire starts the workflow again.
func (p *State) Over(now time.Time) bool {
	return p.Phase == fleet.Absent && len(p.Holds) == 0 && len(p.Commands.Open) == 0 && !p.isCordoned() &&
		now.Sub(p.Since) > fleet.CloseAfter
}
