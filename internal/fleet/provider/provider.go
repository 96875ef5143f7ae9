package provider

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
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
	// Round is the observer's last one; Unused the holds that it found without objects and bookings.
	Round  fleet.RoundID `json:"round,omitzero"`
	Unheld []string      `json:"unheld,omitempty"`
	Unused []string      `json:"unused,omitempty"`
	// Remains: the last round found one of our peerings that this entity does not know.
	Remains bool `json:"remains,omitempty"`
	// Unpeered: it found none where standbys need one.
	Unpeered bool `json:"unpeered,omitempty"`
	// Standing is what the observer has found wrong with the provider.
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
	case fleet.HoldLeftover:
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

// lacksRoom notes that our own cluster has no room for a pod of the peering, until it is made or a round says
// otherwise.
func (p *State) lacksRoom(message string, now time.Time) {
	if p.Standing.Good() {
		p.Standing = fleet.Standing{Fault: fleet.ConditionNoRoomForGateway, Message: message, Since: now}
		p.Revision++
	}
}

// Snapshot is what the provider publishes.
func (p *State) Snapshot(now time.Time) fleet.ProviderSnapshot {
	s := fleet.ProviderSnapshot{
		ID: p.ID, Revision: p.Revision, Term: p.Round.Term, Phase: p.Phase, Run: p.Run, Since: p.Since, Offer: p.Offer,
		Failure:  p.Failure,
		Refusing: p.inForce(now), Free: p.Free(), KeepUntil: p.KeepUntil, Holds: p.nodeHolds(), Standby: p.standbys(),
		Standing: p.Standing, Cordoned: p.Cordoned, Recovering: p.Recovering, At: now,
	}
	for _, key := range s.Holds {
		if p.Holds[key].State == fleet.HoldWaiting {
			s.Waiting = append(s.Waiting, key)
		}
	}
	return s
}
