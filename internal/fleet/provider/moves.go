package provider

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// How a peering moves by its table, and what is kept of what moves it.

// Transition is one change of a peering's phase, for the log.
type Transition struct {
	From, To fleet.PeeringPhase
	Event    fleet.PeeringEvent
	Failure  *fleet.Failure
}

// Apply moves a peering by the table; otherwise only a recovery and a sweep set the phase, by what exists. An
// event that the phase's row does not name changes nothing.
func (p *State) Apply(ev fleet.PeeringEvent, why *fleet.Failure, now time.Time) {
	m, ok := p.Phase.Row().Moves[ev]
	if !ok {
		return
	}
	p.Revision++
	refused := m.ToRefused != "" && p.Refusing != nil
	switch {
	case refused:
		p.settle(fleet.HoldRefused, p.refusal(), now)
	case m.RefuseWaiting:
		p.settle(fleet.HoldRefused, why, now)
	case m.Grant:
		p.settle(fleet.HoldGranted, nil, now)
	}
	p.record(ev, why, now)
	if next := p.next(m, refused); next != "" {
		p.enter(next, ev, why, now)
	}
}

// next is where a move leads; empty: nowhere.
func (p *State) next(m fleet.PeeringMove, refused bool) fleet.PeeringPhase {
	switch {
	case refused:
		return m.ToRefused
	case m.ToEmpty != "" && p.Live() == 0 && (m.ToEmpty != fleet.Removing || !p.keeps()):
		return m.ToEmpty
	default:
		return m.To
	}
}

// left has what is left of a peering on the provider removed as a peering is, over the offer. One that is in use, or
// may be, is left alone: the next sweep tells it again.
func (p *State) left(over *fleet.Offer, now time.Time) {
	if p.Phase != fleet.Absent || p.Recovering || p.Live() > 0 || over == nil {
		return
	}
	if p.Offer == nil || !over.ReadAt.Before(p.Offer.ReadAt) {
		p.Offer, p.free = over, nil
	}
	p.Revision++
	p.enter(fleet.Removing, "leftover", nil, now)
}

// record keeps what the event says besides the phase.
func (p *State) record(ev fleet.PeeringEvent, why *fleet.Failure, now time.Time) {
	switch ev {
	case fleet.PeeringFailed:
		p.failed(why, now)
	case fleet.PeeringDone:
		if p.Phase == fleet.Establishing || p.Phase == fleet.Repairing {
			p.Failure, p.Failures, p.Refusing = nil, 0, nil
			if p.Standing.Fault == fleet.ConditionNoRoomForGateway && !p.Standing.Network {
				p.Standing = fleet.Standing{}
			}
		}
	case fleet.PeeringInUse:
		p.KeepUntil = now.Add(inUseRetry)
	case fleet.PeeringLifted:
		p.Refusing = nil
	case fleet.PeeringElapsed:
		if p.Phase == fleet.Refusing {
			p.Refusing = nil
		}
	case fleet.PeeringAcquired, fleet.PeeringEmptied, fleet.PeeringBroken, fleet.PeeringRefused:
	}
}

// failed keeps why a peering's workflow failed.
func (p *State) failed(why *fleet.Failure, now time.Time) {
	p.Failure = why
	switch p.Phase {
	case fleet.Establishing:
		if p.rests() {
			p.Failures++
		}
	case fleet.Removing: // what failed at once would fail at once again
		p.KeepUntil = now.Add(removalRetry)
	case fleet.Absent, fleet.Compensating, fleet.CoolOff, fleet.Established, fleet.Repairing, fleet.Lingering,
		fleet.Refusing:
	}
}

// rests reports whether the provider needs a rest from us after what failed last.
func (p *State) rests() bool { return p.Failure == nil || p.Failure.Code.Row().Rests }

// enter begins a phase anew: what an earlier phase's workflow still reports is stale from here.
func (p *State) enter(next fleet.PeeringPhase, ev fleet.PeeringEvent, why *fleet.Failure, now time.Time) {
	if next == p.Phase {
		return
	}
	p.log = append(p.log, Transition{From: p.Phase, To: next, Event: ev, Failure: why})
	p.Phase, p.Since, p.Checked = next, now, time.Time{}
	p.Run++
	p.Commands.Drop(func(c fleet.Command) bool {
		return c.Kind == fleet.CommandPeering || c.Kind == fleet.CommandUnpeering || c.Kind == fleet.CommandRefusal
	})
}

// Transitions returns the changes of phases since it was last called.
func (p *State) Transitions() []Transition {
	log := p.log
	p.log = nil
	return log
}
