package provider

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// This file changes the phase of a peering, and records the data of each event.

// Transition describes one change of a peering's phase, for the log.
type Transition struct {
	From, To fleet.PeeringPhase
	Event    fleet.PeeringEvent
	Failure  *fleet.Failure
}

// Apply changes the peering as the table PeeringMachine defines for the event. Only a recovery and a sweep set the
// phase without the table, from the existing objects. An event that the phase's row does not name changes nothing.
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

// next returns the phase to which a move leads, or "" for a move that keeps the phase.
func (p *State) next(m fleet.PeeringMove, refused bool) fleet.PeeringPhase {
	switch {
	case refused:
		return m.ToRefused
	case m.ToEmpty != "" && p.Live() == 0 && (m.ToEmpty != fleet.Removing || !p.isKept()):
		return m.ToEmpty
	default:
		return m.To
	}
}

// removeLeftover starts the removal of objects that a peering left on the provider, with the credentials of the given
// offer. It keeps objects of a peering that is or may be in use; the next sweep reports them again.
func (p *State) removeLeftover(offer *fleet.Offer, now time.Time) {
	if p.Phase != fleet.Absent || p.Recovering || p.Live() > 0 || offer == nil {
		return
	}
	if p.Offer == nil || !offer.ReadAt.Before(p.Offer.ReadAt) {
		p.Offer, p.free = offer, nil
	}
	p.Revision++
	p.enter(fleet.Removing, "leftover", nil, now)
}

// record stores the effects of an event, except the change of the phase.
func (p *State) record(ev fleet.PeeringEvent, why *fleet.Failure, now time.Time) {
	switch ev {
	case fleet.PeeringFailed:
		p.recordFailure(why, now)
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

// recordFailure records the failure of a peering's workflow.
func (p *State) recordFailure(why *fleet.Failure, now time.Time) {
	p.Failure = why
	switch p.Phase {
	case fleet.Establishing:
		if p.rests() {
			p.Failures++
		}
	case fleet.Removing: // an immediate retry would fail again
		p.KeepUntil = now.Add(removalRetry)
	case fleet.Absent, fleet.Compensating, fleet.CoolOff, fleet.Established, fleet.Repairing, fleet.Lingering,
		fleet.Refusing:
	}
}

// rests reports whether the provider needs a pause after the last failure.
func (p *State) rests() bool { return p.Failure == nil || p.Failure.Code.Row().Rests }

// enter starts a phase with a new run number, so that later reports of an earlier phase's workflow are stale.
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

// Transitions returns the changes of the phase since the last call.
func (p *State) Transitions() []Transition {
	log := p.log
	p.log = nil
	return log
}
