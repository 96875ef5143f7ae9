package provider

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// State is the state of the workflow provider/<id>: the provider's newest offer, its holds and its peering. Step
// processes every event, and adds the work for the workflow to Commands.
type State struct {
	ID    string             `json:"id"`
	Phase fleet.PeeringPhase `json:"phase"`
	Since time.Time          `json:"since"`
	// Offer is the newest known offer. Its linger time and unpeer policy apply to the peering.
	Offer *fleet.Offer `json:"offer,omitempty"`
	// Holds maps keys to holds. It contains the holds that wait or are granted. For an hour it also keeps refused and
	// released holds, so that a late acquire of the same attempt gets the same answer.
	Holds map[string]Hold `json:"holds,omitempty"`
	// Failure is the reason for which the peering last failed.
	Failure *fleet.Failure `json:"failure,omitempty"`
	// Run numbers the runs of peering/<id> and unpeering/<id>; a report of an earlier run is stale. A new workflow starts
	// the count at the current time in microseconds, so that it never reuses the number of an earlier workflow's run.
	Run int `json:"run,omitempty"`
	// Checked is the time at which the phase's workflow was last started. In phase Refusing, it is the time of the
	// last check whether the provider still refuses.
	Checked time.Time `json:"checked,omitzero"`
	// Started is the newest run for which Temporal started a new workflow.
	Started  int   `json:"started,omitempty"`
	Revision int64 `json:"revision"`
	// KeepUntil forbids the removal of the peering before this time. It is set by a recovery, and by a removal that
	// failed or found the peering in use.
	KeepUntil  time.Time      `json:"keepUntil,omitzero"`
	Failures   int            `json:"failures,omitempty"` // number of consecutive failures; lengthens CoolOff
	Recovering bool           `json:"recovering,omitempty"`
	Commands   fleet.Commands `json:"commands"`
	// Round is the observer's last round. Unheld lists the slices that it found and that have no hold. Unused lists
	// the holds for which it found neither objects nor a booking.
	Round  fleet.RoundID `json:"round,omitzero"`
	Unheld []string      `json:"unheld,omitempty"`
	Unused []string      `json:"unused,omitempty"`
	// Remains reports that the last round found one of our peerings although this entity is in phase Absent.
	Remains bool `json:"remains,omitempty"`
	// Unpeered reports that the last round found no peering although a standby needs one.
	Unpeered bool `json:"unpeered,omitempty"`
	// Standing describes the faults of the provider that the observer has found.
	Standing fleet.Standing `json:"standing,omitzero"`
	// NetworkTried is the time of the last repair of the network, or zero while the network works.
	NetworkTried time.Time `json:"networkTried,omitzero"`
	// Refusing is the provider's refusal while it is in effect; nil without one.
	Refusing *fleet.ProviderRefusal `json:"refusing,omitempty"`
	// Cordoned is the time of the operator's cordon, or zero without one.
	Cordoned time.Time `json:"cordoned,omitzero"`
	// Inherits reports that the cordon of the provider's previous workflow is not known yet, and that no operator has
	// cordoned or uncordoned the provider since this workflow started.
	Inherits bool `json:"inherits,omitempty"`

	free corev1.ResourceList
	log  []Transition
}

// New returns the state of a provider that first recovers its holds and its phase from the existing objects.
func New(id string, now time.Time) *State {
	p := &State{ID: id, Phase: fleet.Absent, Since: now, Holds: map[string]Hold{}, Recovering: true, Inherits: true,
		Run: int(now.UnixMicro())}
	p.Commands.Add(fleet.Command{Kind: fleet.CommandCancel, Driver: "unpeering"})
	p.Commands.Add(fleet.Command{Kind: fleet.CommandRecover})
	return p
}

// Input describes one thing that happened to a provider. The zero value means that time has passed.
type Input struct {
	Requests    []fleet.HoldRequest
	Report      *fleet.PeeringReport
	Result      *fleet.Result
	Differences *fleet.Differences
	// Cordon is an operator's order: true cordons the provider, false uncordons it.
	Cordon *bool
}

// Step processes an event, and adds the work for the workflow to Commands. It is pure: time and every result are
// inputs. It books requests immediately, also during a recovery. The present phase decides whether their holds wait.
func (p *State) Step(in Input, now time.Time) {
	if in.Cordon != nil {
		p.cordon(*in.Cordon, now)
	}
	for _, r := range in.Requests {
		p.applyRequest(r, now)
	}
	if r := in.Report; r != nil && r.Run == p.Run {
		p.applyReport(*r, now)
	}
	if in.Result != nil {
		p.applyResult(*in.Result, now)
	}
	if in.Differences != nil {
		p.applyRound(*in.Differences, now)
	}
	if !p.Recovering {
		p.elapse(now)
		p.repairNetwork(now)
		p.run(now)
		p.checkRefusal(now)
	}
	p.sweepHolds(now)
}

// applyRequest processes one request: a hold's acquire or release, or a report about the provider.
func (p *State) applyRequest(r fleet.HoldRequest, now time.Time) {
	switch r.Kind {
	case fleet.HoldAcquire:
		p.acquire(r, now)
	case fleet.HoldRelease:
		p.release(r.Key, now)
	case fleet.HoldBroken:
		p.Apply(fleet.PeeringBroken, nil, now)
	case fleet.HoldRefusing:
		p.recordRefusing(r.Refusing, now)
	case fleet.HoldLeftover:
		p.removeLeftover(r.Offer, now)
	case fleet.HoldNoRoom:
		p.recordNoRoom(r.Message, now)
	}
}

// applyReport processes the report of the phase's workflow. It first processes the refusal that the report may contain.
func (p *State) applyReport(r fleet.PeeringReport, now time.Time) {
	if r.Refusing != nil {
		p.Failure = r.Failure
		p.recordRefusing(r.Refusing, now)
	}
	if r.Event != fleet.PeeringRefused && r.Run == p.Run {
		p.Apply(r.Event, r.Failure, now)
	}
}

// recordNoRoom records that the consumer has no free capacity for a pod of the peering. The record stays until the
// peering is established or a round of the observer replaces it.
func (p *State) recordNoRoom(message string, now time.Time) {
	if p.Standing.Good() {
		p.Standing = fleet.Standing{Fault: fleet.ConditionNoRoomForGateway, Message: message, Since: now}
		p.Revision++
	}
}

// Snapshot returns the state that the provider publishes.
func (p *State) Snapshot(now time.Time) fleet.ProviderSnapshot {
	s := fleet.ProviderSnapshot{
		ID: p.ID, Revision: p.Revision, Term: p.Round.Term, Phase: p.Phase, Run: p.Run, Since: p.Since, Offer: p.Offer,
		Failure:  p.Failure,
		Refusing: p.presentRefusal(now), Free: p.Free(), KeepUntil: p.KeepUntil, Holds: p.nodeHolds(), Standby: p.standbys(),
		Standing: p.Standing, Cordoned: p.Cordoned, Recovering: p.Recovering, At: now,
	}
	for _, key := range s.Holds {
		if p.Holds[key].State == fleet.HoldWaiting {
			s.Waiting = append(s.Waiting, key)
		}
	}
	return s
}
