package fleet

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Instance is one unit of a group's target size, from booking to release. The group's ledger and the instance's
// driver each have a copy. The group applies the table (machine.go) in the phases Pending, Ready, Failed and
// Released, and the driver in all other phases. The driver reports its copy in Views.
type Instance struct {
	Name string `json:"name"`
	// Spec is the instance's part of the group's spec at the time of booking. The instances of a ledger share equal
	// specs, see Ledger.Specs.
	Spec     *InstanceSpec `json:"-"`
	SpecHash string        `json:"specHash,omitempty"`
	BookedAt time.Time     `json:"bookedAt"`
	Phase    Phase         `json:"phase"`
	Since    time.Time     `json:"since"` // the time at which it entered Phase

	// Attempt is the number of the current attempt. The first attempt has the number 1; before it, Attempt is 0. Each
	// attempt uses one provider.
	Attempt int `json:"attempt,omitempty"`
	// Offer is the current attempt's offer; nil before the first selection.
	Offer *Offer `json:"offer,omitempty"`
	// Refused lists the providers that are excluded for this instance.
	Refused []string `json:"refused,omitempty"`
	// PriceCap bounds the hourly cost of the instance, see Request.PriceCap.
	PriceCap float64 `json:"priceCap,omitempty"`

	// Leaving is set when CA deletes the instance. From then on the instance no longer counts towards the target
	// size, in any phase.
	Leaving    bool `json:"leaving,omitempty"`
	Force      bool `json:"force,omitempty"`
	Registered bool `json:"registered,omitempty"`
	NotReady   bool `json:"notReady,omitempty"`
	// NotReadySince is the time at which the group learned that the Node is not Ready; zero while the Node is Ready.
	NotReadySince time.Time `json:"notReadySince,omitzero"`
	Stuck         string    `json:"stuck,omitempty"`
	Failure       *Failure  `json:"failure,omitempty"` // the last failure; in phase Failed, the reason for the failure
	// Trace identifies the trace of the operation in progress on the instance, see Request.Trace.
	Trace string `json:"trace,omitempty"`
}

// Event describes one thing that happened to an instance. An event that ends a step names the step and its attempt.
type Event struct {
	Kind    EventKind `json:"kind"`
	Step    Step      `json:"step,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Failure *Failure  `json:"failure,omitempty"`
	// Offer is the offer that Select chose.
	Offer *Offer `json:"offer,omitempty"`
}

// ErrStale means that an event concludes a step other than the instance's current one; nothing was changed.
var ErrStale = errors.New("the event is not for the instance's current step")

// NewInstance returns a newly booked instance in Pending.
func NewInstance(name string, spec *InstanceSpec, now time.Time) Instance {
	return Instance{Name: name, Spec: spec, SpecHash: spec.Hash(), BookedAt: now, Phase: Pending, Since: now}
}

// Counts reports whether the instance is part of the target size (I1).
func (i *Instance) Counts() bool { return !i.Leaving && i.Phase.Row().Counts }

// Deadline returns the time by which the instance must have found a provider.
func (i *Instance) Deadline() time.Time {
	return i.BookedAt.Add(i.Spec.Budgets.WithDefaults().Total.Duration)
}

// Provider returns the id of the current attempt's provider; empty before the first selection.
func (i *Instance) Provider() string { return i.Offer.from().ID }

// AttemptRef returns the identity of the instance's current attempt for the backend.
func (i *Instance) AttemptRef() Attempt {
	return Attempt{Group: i.Spec.ID, Instance: i.Name, Number: i.Attempt, Provider: i.Offer.from()}
}

// Apply changes the instance as the table Machine defines for the event, and returns the table's move. If the event
// belongs to a step other than the current one, Apply changes nothing and returns ErrStale. If the table has no move
// for the event in this phase, Apply returns a Move with Ignored set. Two kinds of transitions do not use the table.
// The existing objects determine the phase after a recovery, after the loss of a driver, and when a forgotten node is
// found (results.go, compare.go). The group copies the phase from a driver's view (views.go).
func (i *Instance) Apply(ev Event, now time.Time) (Move, error) {
	row := i.Phase.Row()
	if !slices.Contains(EventKinds, ev.Kind) {
		return Move{}, fmt.Errorf("event %q is not defined in phase %q", ev.Kind, i.Phase)
	}
	if ev.concludes() && (ev.Step != row.Step || ev.Attempt != i.Attempt) {
		return Move{}, fmt.Errorf("event %s of step %s, attempt %d, in phase %s (step %s, attempt %d): %w", ev.Kind, ev.Step,
			ev.Attempt, i.Phase, row.Step, i.Attempt, ErrStale)
	}
	m, ok := row.Moves[ev.Kind]
	if !ok {
		return Move{Ignored: true}, nil
	}
	i.record(ev, now)
	if i.Phase == Selecting && ev.Kind == Done {
		i.Attempt++
		i.Offer = ev.Offer
	}
	if m.Blame {
		i.refuse(i.Provider())
	}
	i.Force = i.Force || m.Force
	if m.Stuck {
		i.Stuck = "cancelled"
	}
	if m.To != "" {
		i.enter(m.To, now)
	}
	return m, nil
}

func (i *Instance) enter(phase Phase, now time.Time) {
	i.Phase, i.Since = phase, now
	if !phase.Growing() { // no attempt follows, so only the failure is kept
		i.Refused = nil
	}
	i.Registered = phase == Ready
	if phase == Ready && !i.Leaving {
		i.Trace = ""
	}
}

// concludes reports whether the event ends a step, in contrast to a fact or a request from outside. A cancellation or a
// deadline without a step concerns the whole instance.
func (ev Event) concludes() bool {
	switch ev.Kind {
	case Done, Again, Refused, GaveUp:
		return true
	case Cancelled, Deadline:
		return ev.Step != StepNone
	case Registered, NotReady, Lost, Deleted, Expired, Paused, Stopped:
	}
	return false
}

// record stores the effects of an event, except the change of the phase.
func (i *Instance) record(ev Event, now time.Time) {
	if ev.Failure != nil {
		i.Failure = ev.Failure
	}
	switch {
	case ev.Kind == Registered:
		i.Registered = true
		i.ready(true, now)
	case ev.Kind == NotReady:
		i.ready(false, now)
	case ev.Kind == Done && i.Phase == Joining:
		i.Failure = nil
	}
}

// ready records whether the Node is Ready, and since when it is not.
func (i *Instance) ready(is bool, now time.Time) {
	switch {
	case is:
		i.NotReady, i.NotReadySince = false, time.Time{}
	case !i.NotReady:
		i.NotReady, i.NotReadySince = true, now
	}
}

// MarkDeleted marks the instance as deleted by CA: the instance no longer counts, and is no longer stuck. MarkDeleted
// is idempotent.
func (i *Instance) MarkDeleted() { i.Leaving, i.Stuck = true, "" }
