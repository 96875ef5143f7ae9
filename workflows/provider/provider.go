package provider

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// State is a Provider: its newest offer, its holds and its peering. It is the state of the workflow
// provider/<id>: Step takes everything that can happen and leaves in Commands what is to be done outside.
type State struct {
	ID    string             `json:"id"`
	Phase fleet.PeeringPhase `json:"phase"`
	Since time.Time          `json:"since"`
	// Offer is the newest one seen; its linger and unpeer policy rule.
	Offer *fleet.Offer `json:"offer,omitempty"`
	// Holds are kept by key: live ones, and for an hour refused and released ones, so that a late acquire of the same
	// attempt gets the same answer.
	Holds map[string]Hold `json:"holds,omitempty"`
	// Failure is why the peering last failed.
	Failure *fleet.Failure `json:"failure,omitempty"`
	// Run numbers the runs of peering/<id> and unpeering/<id>; a report of an earlier run is stale. It counts on from the
	// microsecond in which this life of the provider began, so that no run of an earlier life has the same number.
	Run int `json:"run,omitempty"`
	// Checked is when the phase's workflow was last started.
	Checked time.Time `json:"checked,omitzero"`
	// Started is the newest run that was started and was none before.
	Started  int   `json:"started,omitempty"`
	Revision int64 `json:"revision"`
	// KeepUntil forbids removal before then: after a recovery nothing is removed for a while.
	KeepUntil  time.Time      `json:"keepUntil,omitzero"`
	Failures   int            `json:"failures,omitempty"` // in a row; lengthens CoolOff
	Recovering bool           `json:"recovering,omitempty"`
	Commands   fleet.Commands `json:"commands"`
	// Round is the last comparison; Unused the holds that it found without objects and bookings.
	Round  int64    `json:"round,omitempty"`
	Unheld []string `json:"unheld,omitempty"`
	Unused []string `json:"unused,omitempty"`
	// Remains: the last comparison found one of our peerings that this entity does not know.
	Remains bool `json:"remains,omitempty"`
	// Unpeered: it found none where standbys need one.
	Unpeered bool `json:"unpeered,omitempty"`
	// Standing is what the comparison has found wrong with the provider.
	Standing fleet.Standing `json:"standing,omitzero"`
	// NetworkTried is when the network was last tried to repair; zero while nothing is wrong with it.
	NetworkTried time.Time `json:"networkTried,omitzero"`
	// Refusing is the provider's no, while it is in force.
	Refusing *fleet.ProviderRefusal `json:"refusing,omitempty"`
	// Cordoned is since when an operator wants nothing new there; zero: nobody does.
	Cordoned time.Time `json:"cordoned,omitzero"`
	// Inherits: what the last life of the provider knew of that is not known yet, and no operator has said since.
	Inherits bool `json:"inherits,omitempty"`

	free corev1.ResourceList
	log  []Transition
}

// Transition is one change of a peering's phase, for the log.
type Transition struct {
	From, To fleet.PeeringPhase
	Event    fleet.PeeringEvent
	Failure  *fleet.Failure
}

// New is a Provider that first looks what exists.
func New(id string, now time.Time) *State {
	p := &State{ID: id, Phase: fleet.Absent, Since: now, Holds: map[string]Hold{}, Recovering: true, Inherits: true,
		Run: int(now.UnixMicro())}
	p.Commands.Add(fleet.Command{Kind: fleet.CommandCancel, Driver: "unpeering"})
	p.Commands.Add(fleet.Command{Kind: fleet.CommandRecover})
	return p
}

// Input is one thing that happened to a provider; the zero value is that time has passed.
type Input struct {
	Requests    []fleet.HoldRequest
	Report      *fleet.PeeringReport
	Result      *fleet.Result
	Differences *fleet.Differences
	// Cordon is an operator's word: true cordons the provider, false uncordons it.
	Cordon *bool
}

// Step takes what happened and leaves in Commands what is to be done. It is pure: time and every result are inputs.
// Requests book at once, also during a recovery: they wait for it in the phase.
func (p *State) Step(in Input, now time.Time) {
	if in.Cordon != nil {
		p.cordon(*in.Cordon, now)
	}
	for _, r := range in.Requests {
		p.take(r, now)
	}
	if r := in.Report; r != nil && r.Run == p.Run {
		p.report(*r, now)
	}
	if in.Result != nil {
		p.result(*in.Result, now)
	}
	if in.Differences != nil {
		p.compared(*in.Differences, now)
	}
	if !p.Recovering {
		p.elapse(now)
		p.repairNetwork(now)
		p.run(now)
		p.ask(now)
	}
	p.sweepHolds(now)
}

// take books what somebody asks for, or has seen.
func (p *State) take(r fleet.HoldRequest, now time.Time) {
	switch r.Kind {
	case fleet.HoldAcquire:
		p.acquire(r, now)
	case fleet.HoldRelease:
		p.release(r.Key, now)
	case fleet.HoldBroken:
		p.Apply(fleet.PeeringBroken, nil, now)
	case fleet.HoldRefusing:
		p.told(r.Refusing, now)
	case fleet.HoldLeft:
		p.left(r.Offer, now)
	case fleet.HoldNoRoom:
		p.lacksRoom(r.Message, now)
	}
}

// report takes the end of the phase's workflow. A refusal that comes with it is noted first.
func (p *State) report(r fleet.PeeringReport, now time.Time) {
	if r.Refusing != nil {
		p.Failure = r.Failure
		p.told(r.Refusing, now)
	}
	if r.Event != fleet.PeeringRefused && r.Run == p.Run {
		p.Apply(r.Event, r.Failure, now)
	}
}

// run starts the phase's workflow: on entry, and every restartRun again, in case somebody has terminated it.
func (p *State) run(now time.Time) {
	kind := p.Phase.Row().Runs
	if kind == "" || p.Offer == nil || p.starting() || !p.Checked.IsZero() && now.Before(p.restart()) {
		return
	}
	p.Checked = now
	p.Commands.Add(fleet.Command{Kind: kind})
}

// starting reports whether the phase's workflow is being started.
func (p *State) starting() bool {
	return p.Commands.Has(fleet.CommandPeering, fleet.CommandUnpeering)
}

// restart is when the phase's workflow is started once more although it should run.
func (p *State) restart() time.Time { return p.Checked.Add(restartRun) }

// PeeringInput is what the phase's workflow is started with.
func (p *State) PeeringInput() fleet.PeeringInput {
	budget, network := p.budgets()
	in := fleet.PeeringInput{Provider: fleet.Provider{ID: p.ID}, Run: p.Run, Budget: metav1.Duration{Duration: budget},
		NetworkBudget: metav1.Duration{Duration: network}}
	if p.Offer != nil {
		in.Provider.Credentials, in.Provider.Network = p.Offer.Credentials, p.Offer.Network
	}
	return in
}

// budgets are the longest ones of those that wait: of the network, and of all else.
func (p *State) budgets() (budget, network time.Duration) {
	for _, h := range p.Holds {
		if h.State == fleet.HoldWaiting {
			budget, network = max(budget, h.Budget), max(network, h.NetworkBudget)
		}
	}
	return cmp.Or(budget, fleet.EstablishBound), cmp.Or(network, fleet.NetworkBound)
}

// Apply moves a peering by the table; otherwise only a recovery and a sweep set the phase, by what exists. It returns
// the move; an ignored one changed nothing.
func (p *State) Apply(ev fleet.PeeringEvent, why *fleet.Failure, now time.Time) fleet.PeeringMove {
	m, ok := p.Phase.Row().Moves[ev]
	if !ok || m.Ignored {
		return fleet.PeeringMove{Ignored: true}
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
	return m
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
	p.enter(fleet.Removing, "left", nil, now)
}

// lacksRoom notes that our own cluster has no room for a pod of the peering, until it is made or a round says
// otherwise.
func (p *State) lacksRoom(message string, now time.Time) {
	if p.Standing.Good() {
		p.Standing = fleet.Standing{Fault: fleet.ConditionNoRoomForGateway, Message: message, Since: now}
		p.Revision++
	}
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
		if !p.blameless() {
			p.Failures++
		}
	case fleet.Removing: // what failed at once would fail at once again
		p.KeepUntil = now.Add(removalRetry)
	case fleet.Absent, fleet.Compensating, fleet.CoolOff, fleet.Established, fleet.Repairing, fleet.Lingering,
		fleet.Refusing:
	}
}

// blameless reports whether what failed last was our own cluster's fault: the provider needs no rest from us.
func (p *State) blameless() bool {
	return p.Failure != nil && p.Failure.Code == fleet.CodeNoRoom
}

// enter begins a phase anew: what an earlier phase's workflow still reports is stale from here.
func (p *State) enter(next fleet.PeeringPhase, ev fleet.PeeringEvent, why *fleet.Failure, now time.Time) {
	if next == p.Phase {
		return
	}
	p.log = append(p.log, Transition{From: p.Phase, To: next, Event: ev, Failure: why})
	p.Phase, p.Since, p.Checked = next, now, time.Time{}
	p.Run++
	p.Commands.Drop(func(c fleet.Command) bool {
		return c.Kind == fleet.CommandPeering || c.Kind == fleet.CommandUnpeering || c.Kind == fleet.CommandAsk
	})
}

// Transitions returns the changes of phases since it was last called.
func (p *State) Transitions() []Transition {
	log := p.log
	p.log = nil
	return log
}

// Snapshot is what the provider publishes.
func (p *State) Snapshot(now time.Time) fleet.ProviderSnapshot {
	s := fleet.ProviderSnapshot{
		ID: p.ID, Revision: p.Revision, Phase: p.Phase, Run: p.Run, Since: p.Since, Offer: p.Offer, Failure: p.Failure,
		Refusing: p.inForce(now), Free: p.Free(), KeepUntil: p.KeepUntil, Holds: p.nodeHolds(), Standby: p.standbys(),
		Standing: p.Standing, Cordoned: p.Cordoned, At: now,
	}
	for _, key := range s.Holds {
		if p.Holds[key].State == fleet.HoldWaiting {
			s.Waiting = append(s.Waiting, key)
		}
	}
	return s
}
