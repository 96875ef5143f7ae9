package fleet

import "time"

// Times of a peering's life.
const (
	tombstoneTTL   = time.Hour
	coolOffFirst   = 15 * time.Second
	coolOffMax     = 10 * time.Minute
	RemovalWait    = 60 * time.Second // how long an acquire waits for a removal under way
	EstablishBound = 90 * time.Second
	NetworkBound   = 5 * time.Minute // of EstablishBound's peering, for its network
	inUseRetry     = 5 * time.Minute
	removalRetry   = time.Minute
	// networkRetry is how often a network that does not work is tried to repair.
	networkRetry = 10 * time.Minute
	// restartRun is how often peering/<id> or unpeering/<id> is started although it should run: someone may have
	// terminated it. Its own clock says when it fails; time that it spends in our queues does not.
	restartRun = time.Minute
	// recoveredKeep is how long a provider that recovered removes nothing: holds may not have come back yet.
	recoveredKeep = 5 * time.Minute
)

// elapse moves the peering when its phase's time is over.
func (p *ProviderState) elapse(now time.Time) {
	due := p.phaseEnd()
	if due.IsZero() || now.Before(due) {
		return
	}
	p.Apply(PeeringElapsed, nil, now)
}

// coolOff is how long a provider rests whose peering has failed.
func (p *ProviderState) coolOff() time.Duration {
	if p.blameless() {
		return 0
	}
	d := coolOffFirst
	for range min(p.Failures-1, 6) {
		d *= 2
	}
	return min(d, coolOffMax)
}

// phaseEnd is when the phase is over by itself; zero when it has no end of its own.
func (p *ProviderState) phaseEnd() time.Time {
	switch p.Phase {
	case CoolOff:
		return p.Since.Add(p.coolOff())
	case Lingering:
		linger := DefaultLinger
		if p.Offer != nil {
			if p.Offer.Unpeer == UnpeerNever {
				return time.Time{}
			}
			linger = p.Offer.Linger()
		}
		if due := p.Since.Add(linger); due.After(p.KeepUntil) {
			return due
		}
		return p.KeepUntil
	case Removing:
		if first := p.firstWaiting(); !first.IsZero() {
			return first.Add(RemovalWait)
		}
	case Refusing:
		if p.Refusing != nil {
			return p.Refusing.Until
		}
	case Absent, Establishing, Compensating, Established, Repairing:
	}
	return time.Time{}
}

func (p *ProviderState) firstWaiting() (first time.Time) {
	for _, h := range p.Holds {
		if h.State == HoldWaiting {
			first = earlier(first, h.Since)
		}
	}
	return first
}

// Due is when Step must be called although nothing happened; zero for never.
func (p *ProviderState) Due(now time.Time) time.Time {
	next := p.Commands.due(now)
	if p.Recovering {
		return next
	}
	if p.Phase.Row().Runs != "" && !p.Checked.IsZero() && !p.starting() {
		next = earlier(next, p.restart())
	}
	return earlier(earlier(earlier(next, p.askDue()), p.phaseEnd()), p.networkDue())
}

// repairNetwork has a network that does not work made whole, as a broken peering is: what is missing of it is made, and
// what the other side has changed is followed.
func (p *ProviderState) repairNetwork(now time.Time) {
	if due := p.networkDue(); !due.IsZero() && !now.Before(due) {
		p.NetworkTried = now
		p.Apply(PeeringBroken, nil, now)
	}
}

// networkDue is when the network is next tried to repair; zero for never.
func (p *ProviderState) networkDue() time.Time {
	switch {
	case !p.Standing.Network || p.Phase != Established && p.Phase != Lingering:
		return time.Time{}
	case p.NetworkTried.IsZero():
		return p.Since
	case p.Phase == Lingering && !p.keeps(): // it is soon removed
		return time.Time{}
	default:
		return p.NetworkTried.Add(networkRetry)
	}
}

// closeAfter is how long a provider that is of no use any longer keeps its workflow.
const closeAfter = 24 * time.Hour

// Over reports whether the workflow may close: nothing is held, peered, cordoned or remembered for a day. An acquire
// starts it anew.
func (p *ProviderState) Over(now time.Time) bool {
	return p.Phase == Absent && len(p.Holds) == 0 && len(p.Commands.Open) == 0 && !p.isCordoned() &&
		now.Sub(p.Since) > closeAfter
}
