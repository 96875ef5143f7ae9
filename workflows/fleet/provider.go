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
	// Remains: the last comparison found a peering of ours that this entity does not know.
	Remains bool `json:"remains,omitempty"`
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

// Apply moves a peering by the table; beside it only a recovery sets the phase, by what exists. It returns the move;
// an ignored one changed nothing.
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

// record keeps what the event says beside the phase.
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
