package fleet

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderState is a Provider: its newest offer, its holds and its peering. It is the state of the workflow
// provider/<id>: Step takes everything that can happen and leaves in Commands what is to be done outside.
type ProviderState struct {
	ID    string       `json:"id"`
	Phase PeeringPhase `json:"phase"`
	Since time.Time    `json:"since"`
	// Offer is the newest one seen; its linger and unpeer policy rule.
	Offer *Offer `json:"offer,omitempty"`
	// Holds are kept by key: live ones, and for an hour refused and released ones, so that a late acquire of the same
	// attempt gets the same answer.
	Holds map[string]Hold `json:"holds,omitempty"`
	// Failure is why the peering last failed.
	Failure *Failure `json:"failure,omitempty"`
	// Run numbers the runs of peering/<id> and unpeering/<id>; a report of an earlier run is stale. It counts on from the
	// microsecond in which this life of the provider began, so that no run of an earlier life has the same number.
	Run int `json:"run,omitempty"`
	// Checked is when the phase's workflow was last started.
	Checked time.Time `json:"checked,omitzero"`
	// Started is the newest run that was started and was none before.
	Started  int   `json:"started,omitempty"`
	Revision int64 `json:"revision"`
	// KeepUntil forbids removal before then: after a recovery nothing is removed for a while.
	KeepUntil  time.Time `json:"keepUntil,omitzero"`
	Failures   int       `json:"failures,omitempty"` // in a row; lengthens CoolOff
	Recovering bool      `json:"recovering,omitempty"`
	Commands   Commands  `json:"commands"`
	// Round is the last comparison; Unused the holds that it found without objects and bookings.
	Round  int64    `json:"round,omitempty"`
	Unheld []string `json:"unheld,omitempty"`
	Unused []string `json:"unused,omitempty"`
	// Remains: the last comparison found one of our peerings that this entity does not know.
	Remains bool `json:"remains,omitempty"`
	// Unpeered: it found none where standbys need one.
	Unpeered bool `json:"unpeered,omitempty"`
	// Standing is what the comparison has found wrong with the provider.
	Standing Standing `json:"standing,omitzero"`
	// NetworkTried is when the network was last tried to repair; zero while nothing is wrong with it.
	NetworkTried time.Time `json:"networkTried,omitzero"`
	// Refusing is the provider's no, while it is in force.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
	// Cordoned is since when an operator wants nothing new there; zero: nobody does.
	Cordoned time.Time `json:"cordoned,omitzero"`
	// Inherits: what the last life of the provider knew of that is not known yet, and no operator has said since.
	Inherits bool `json:"inherits,omitempty"`

	free corev1.ResourceList
	log  []PeeringTransition
}

// PeeringTransition is one change of a peering's phase, for the log.
type PeeringTransition struct {
	From, To PeeringPhase
	Event    PeeringEvent
	Failure  *Failure
}

// NewProviderState is a Provider that first looks what exists.
func NewProviderState(id string, now time.Time) *ProviderState {
	p := &ProviderState{ID: id, Phase: Absent, Since: now, Holds: map[string]Hold{}, Recovering: true, Inherits: true,
		Run: int(now.UnixMicro())}
	p.Commands.Add(Command{Kind: CommandCancel, Driver: "unpeering"})
	p.Commands.Add(Command{Kind: CommandRecover})
	return p
}

// ProviderInput is one thing that happened to a provider; the zero value is that time has passed.
type ProviderInput struct {
	Requests    []HoldRequest
	Report      *PeeringReport
	Result      *Result
	Differences *Differences
	// Cordon is an operator's word: true cordons the provider, false uncordons it.
	Cordon *bool
}

// Step takes what happened and leaves in Commands what is to be done. It is pure: time and every result are inputs.
// Requests book at once, also during a recovery: they wait for it in the phase.
func (p *ProviderState) Step(in ProviderInput, now time.Time) {
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
func (p *ProviderState) take(r HoldRequest, now time.Time) {
	switch r.Kind {
	case HoldAcquire:
		p.acquire(r, now)
	case HoldRelease:
		p.release(r.Key, now)
	case HoldBroken:
		p.Apply(PeeringBroken, nil, now)
	case HoldRefusing:
		p.told(r.Refusing, now)
	case HoldLeft:
		p.left(r.Offer, now)
	case HoldNoRoom:
		p.lacksRoom(r.Message, now)
	}
}

// report takes the end of the phase's workflow. A refusal that comes with it is noted first.
func (p *ProviderState) report(r PeeringReport, now time.Time) {
	if r.Refusing != nil {
		p.Failure = r.Failure
		p.told(r.Refusing, now)
	}
	if r.Event != PeeringRefused && r.Run == p.Run {
		p.Apply(r.Event, r.Failure, now)
	}
}

// run starts the phase's workflow: on entry, and every restartRun again, in case somebody has terminated it.
func (p *ProviderState) run(now time.Time) {
	kind := p.Phase.Row().Runs
	if kind == "" || p.Offer == nil || p.starting() || !p.Checked.IsZero() && now.Before(p.restart()) {
		return
	}
	p.Checked = now
	p.Commands.Add(Command{Kind: kind})
}

// starting reports whether the phase's workflow is being started.
func (p *ProviderState) starting() bool {
	return p.Commands.Has(func(c Command) bool { return c.Kind == CommandPeering || c.Kind == CommandUnpeering })
}

// restart is when the phase's workflow is started once more although it should run.
func (p *ProviderState) restart() time.Time { return p.Checked.Add(restartRun) }

// PeeringInput is what the phase's workflow is started with.
func (p *ProviderState) PeeringInput() PeeringInput {
	budget, network := p.budgets()
	in := PeeringInput{Provider: Provider{ID: p.ID}, Run: p.Run, Budget: metav1.Duration{Duration: budget},
		NetworkBudget: metav1.Duration{Duration: network}}
	if p.Offer != nil {
		in.Provider.Credentials, in.Provider.Network = p.Offer.Credentials, p.Offer.Network
	}
	return in
}

// budgets are the longest ones of those that wait: of the network, and of all else.
func (p *ProviderState) budgets() (budget, network time.Duration) {
	for _, h := range p.Holds {
		if h.State == HoldWaiting {
			budget, network = max(budget, h.Budget), max(network, h.NetworkBudget)
		}
	}
	return cmp.Or(budget, EstablishBound), cmp.Or(network, NetworkBound)
}

// Apply moves a peering by the table; otherwise only a recovery and a sweep set the phase, by what exists. It returns
// the move; an ignored one changed nothing.
func (p *ProviderState) Apply(ev PeeringEvent, why *Failure, now time.Time) PeeringMove {
	m, ok := p.Phase.Row().Moves[ev]
	if !ok || m.Ignored {
		return PeeringMove{Ignored: true}
	}
	p.Revision++
	refused := m.ToRefused != "" && p.Refusing != nil
	switch {
	case refused:
		p.settle(HoldRefused, p.refusal(), now)
	case m.RefuseWaiting:
		p.settle(HoldRefused, why, now)
	case m.Grant:
		p.settle(HoldGranted, nil, now)
	}
	p.record(ev, why, now)
	if next := p.next(m, refused); next != "" {
		p.enter(next, ev, why, now)
	}
	return m
}

// next is where a move leads; empty: nowhere.
func (p *ProviderState) next(m PeeringMove, refused bool) PeeringPhase {
	switch {
	case refused:
		return m.ToRefused
	case m.ToEmpty != "" && p.Live() == 0 && (m.ToEmpty != Removing || !p.keeps()):
		return m.ToEmpty
	default:
		return m.To
	}
}

// left has what is left of a peering on the provider removed as a peering is, over the offer. One that is in use, or
// may be, is left alone: the next sweep tells it again.
func (p *ProviderState) left(over *Offer, now time.Time) {
	if p.Phase != Absent || p.Recovering || p.Live() > 0 || over == nil {
		return
	}
	if p.Offer == nil || !over.ReadAt.Before(p.Offer.ReadAt) {
		p.Offer, p.free = over, nil
	}
	p.Revision++
	p.enter(Removing, "left", nil, now)
}

// lacksRoom notes that our own cluster has no room for a pod of the peering, until it is made or a round says
// otherwise.
func (p *ProviderState) lacksRoom(message string, now time.Time) {
	if p.Standing.Good() {
		p.Standing = Standing{Fault: ConditionNoRoomForGateway, Message: message, Since: now}
		p.Revision++
	}
}

// record keeps what the event says besides the phase.
func (p *ProviderState) record(ev PeeringEvent, why *Failure, now time.Time) {
	switch ev {
	case PeeringFailed:
		p.failed(why, now)
	case PeeringDone:
		if p.Phase == Establishing || p.Phase == Repairing {
			p.Failure, p.Failures, p.Refusing = nil, 0, nil
			if p.Standing.Fault == ConditionNoRoomForGateway && !p.Standing.Network {
				p.Standing = Standing{}
			}
		}
	case PeeringInUse:
		p.KeepUntil = now.Add(inUseRetry)
	case PeeringLifted:
		p.Refusing = nil
	case PeeringElapsed:
		if p.Phase == Refusing {
			p.Refusing = nil
		}
	case PeeringAcquired, PeeringEmptied, PeeringBroken, PeeringRefused:
	}
}

// failed keeps why a peering's workflow failed.
func (p *ProviderState) failed(why *Failure, now time.Time) {
	p.Failure = why
	switch p.Phase {
	case Establishing:
		if !p.blameless() {
			p.Failures++
		}
	case Removing: // what failed at once would fail at once again
		p.KeepUntil = now.Add(removalRetry)
	case Absent, Compensating, CoolOff, Established, Repairing, Lingering, Refusing:
	}
}

// blameless reports whether what failed last was our own cluster's fault: the provider needs no rest from us.
func (p *ProviderState) blameless() bool { return p.Failure != nil && p.Failure.Code == CodeNoRoom }

// enter begins a phase anew: what an earlier phase's workflow still reports is stale from here.
func (p *ProviderState) enter(next PeeringPhase, ev PeeringEvent, why *Failure, now time.Time) {
	if next == p.Phase {
		return
	}
	p.log = append(p.log, PeeringTransition{From: p.Phase, To: next, Event: ev, Failure: why})
	p.Phase, p.Since, p.Checked = next, now, time.Time{}
	p.Run++
	p.Commands.Drop(func(c Command) bool {
		return c.Kind == CommandPeering || c.Kind == CommandUnpeering || c.Kind == CommandAsk
	})
}

// Transitions returns the changes of phases since it was last called.
func (p *ProviderState) Transitions() []PeeringTransition {
	log := p.log
	p.log = nil
	return log
}
