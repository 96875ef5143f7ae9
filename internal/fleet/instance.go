package fleet

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Instance is one unit of a group's target size, from booking to release. The group's ledger and the instance's driver
// both hold one: the driver alone applies the table between Pending and the next phase at rest, and tells its View.
type Instance struct {
	Name string `json:"name"`
	// Spec is its part of the group's spec as it was when the instance was booked; a ledger's state shares it, see
	// Ledger.Specs.
	Spec     *InstanceSpec `json:"-"`
	SpecHash string        `json:"specHash,omitempty"`
	BookedAt time.Time     `json:"bookedAt"`
	Phase    Phase         `json:"phase"`
	Since    time.Time     `json:"since"` // when it entered Phase

	// Attempt counts the tries on a provider, from 1; 0 before the first.
	Attempt int `json:"attempt,omitempty"`
	// Offer is the current attempt's offer; nil before the first selection.
	Offer *Offer `json:"offer,omitempty"`
	// Refused are the providers that are out for this instance.
	Refused []string `json:"refused,omitempty"`
	// PriceCap is what it may cost in an hour, see Request.PriceCap.
	PriceCap float64 `json:"priceCap,omitempty"`

	// Leaving is set once CA asked the instance back: it no longer counts, whatever its phase.
	Leaving    bool `json:"leaving,omitempty"`
	Force      bool `json:"force,omitempty"`
	Registered bool `json:"registered,omitempty"`
	NotReady   bool `json:"notReady,omitempty"`
	// NotReadySince is when its group first heard so; zero while the Node is Ready.
	NotReadySince time.Time `json:"notReadySince,omitzero"`
	Stuck         string    `json:"stuck,omitempty"`
	Failure       *Failure  `json:"failure,omitempty"` // the last one; the verdict once Failed
	// Trace is that of the operation that wants it as it is to be, until it is, see Request.Trace.
	Trace string `json:"trace,omitempty"`
}

// Event is what just happened to an instance. Step events name the step and the attempt they conclude.
type Event struct {
	Kind    EventKind `json:"kind"`
	Step    Step      `json:"step,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Failure *Failure  `json:"failure,omitempty"`
	// Offer is what Select chose.
	Offer *Offer `json:"offer,omitempty"`
}

// ErrStale means that an event concludes a step that is not the instance's current one; nothing was changed.
var ErrStale = errors.New("the event is not for the instance's current step")

// NewInstance books an instance: Pending.
func NewInstance(name string, spec *InstanceSpec, now time.Time) Instance {
	return Instance{Name: name, Spec: spec, SpecHash: spec.Hash(), BookedAt: now, Phase: Pending, Since: now}
}

// Counts reports whether the instance is part of the target size (I1).
func (i *Instance) Counts() bool { return !i.Leaving && i.Phase.Row().Counts }

// Deadline is when the instance must have found a provider.
func (i *Instance) Deadline() time.Time {
	return i.BookedAt.Add(i.Spec.Budgets.WithDefaults().Total.Duration)
}

// Provider is the id of the current attempt's provider; empty before the first selection.
func (i *Instance) Provider() string { return i.Offer.from().ID }

// AttemptRef names the instance's current attempt to the backend.
func (i *Instance) AttemptRef() Attempt {
	return Attempt{Group: i.Spec.ID, Instance: i.Name, Number: i.Attempt, Provider: i.Offer.from()}
}

// Apply moves an instance by the table. Beside it a phase is set only by what exists, after a recovery or when a driver
// was lost (results.go), and by a driver's view (views.go). It returns the move it made; an event that is not for the
// current step is an ErrStale and changes nothing; one that means nothing here is Ignored.
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
	if !phase.Growing() { // there is no next attempt: only the verdict is kept
		i.Refused = nil
	}
	i.Registered = phase == Ready
	if phase == Ready && !i.Leaving {
		i.Trace = ""
	}
}

// concludes reports whether the event ends a step, as opposed to a fact or a wish from outside. A cancellation or a
// deadline that names no step is one of the whole instance.
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

// record keeps what the event says besides the phase.
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

// ready keeps whether the Node is Ready, and since when it is not.
func (i *Instance) ready(is bool, now time.Time) {
	switch {
	case is:
		i.NotReady, i.NotReadySince = false, time.Time{}
	case !i.NotReady:
		i.NotReady, i.NotReadySince = true, now
	}
}

// GiveBack marks the instance as asked back by CA; it no longer counts, and a stuck one goes on. Idempotent.
func (i *Instance) GiveBack() { i.Leaving, i.Stuck = true, "" }
