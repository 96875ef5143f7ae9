package provider

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Times of a peering's life.
const (
	tombstoneTTL = time.Hour
	coolOffFirst = 15 * time.Second
	coolOffMax   = 10 * time.Minute
	removalWait  = 60 * time.Second // how long an acquire waits for a removal under way
	inUseRetry   = 5 * time.Minute
	removalRetry = time.Minute
	// networkRetry is how often a network that does not work is tried to repair.
	networkRetry = 10 * time.Minute
	// restartRun is how often peering/<id> or unpeering/<id> is started although it should run: someone may have
	// terminated it. Its own clock says when it fails; time that it spends in our queues does not.
	restartRun = time.Minute
	// recoveredKeep is how long a provider that recovered removes nothing: holds may not have come back yet.
	recoveredKeep = 5 * time.Minute
)

// elapse moves the peering when its phase's time is over.
func (p *State) elapse(now time.Time) {
	due := p.phaseEnd()
	if due.IsZero() || now.Before(due) {
		return
	}
	p.Apply(fleet.PeeringElapsed, nil, now)
}

// coolOff is how long a provider rests whose peering has failed.
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

// phaseEnd is when the phase is over by itself; zero when it has no end of its own.
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

// Due is when Step must be called although nothing happened; zero for never.
func (p *State) Due(now time.Time) time.Time {
	next := p.Commands.Due(now)
	if p.Recovering {
		return next
	}
	if p.Phase.Row().Runs != "" && !p.Checked.IsZero() && !p.starting() {
		next = fleet.Earlier(next, p.restart())
	}
	return fleet.Earlier(fleet.Earlier(fleet.Earlier(next, p.askDue()), p.phaseEnd()), p.networkDue())
}

// repairNetwork has a network that does not work made whole, as a broken peering is: what is missing of it is made, and
// what the other side has changed is followed.
func (p *State) repairNetwork(now time.Time) {
	if due := p.networkDue(); !due.IsZero() && !now.Before(due) {
		p.NetworkTried = now
		p.Apply(fleet.PeeringBroken, nil, now)
	}
}

// networkDue is when the network is next tried to repair; zero for never.
func (p *State) networkDue() time.Time {
	switch {
	case !p.Standing.Network || p.Phase != fleet.Established && p.Phase != fleet.Lingering:
		return time.Time{}
	case p.NetworkTried.IsZero():
		return p.Since
	case p.Phase == fleet.Lingering && !p.keeps(): // it is soon removed
		return time.Time{}
	default:
		return p.NetworkTried.Add(networkRetry)
	}
}

// Over reports whether the workflow may close: nothing is held, peered, cordoned or remembered for a day. A round of
// the observer then has it look, and an acquire starts it anew.
func (p *State) Over(now time.Time) bool {
	return p.Phase == fleet.Absent && len(p.Holds) == 0 && len(p.Commands.Open) == 0 && !p.isCordoned() &&
		now.Sub(p.Since) > fleet.CloseAfter
}
