package fleet

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Instance is one unit of a group's target size, from booking to release.
type Instance struct {
	Name string `json:"name"`
	// Spec is the group's spec as it was when the instance was booked.
	Spec     GroupSpec `json:"spec,omitzero"`
	SpecHash string    `json:"specHash,omitempty"` // in place of Spec in a Packed
	BookedAt time.Time `json:"bookedAt"`
	Phase    Phase     `json:"phase"`
	Since    time.Time `json:"since"` // when it entered Phase

	// Attempt counts the tries on a provider, from 1; 0 before the first.
	Attempt int `json:"attempt,omitempty"`
	// Offer is the current attempt's offer; nil before the first selection.
	Offer *Offer `json:"offer,omitempty"`
	// Refused holds the providers that are out for this instance, with the reason.
	Refused map[string]string `json:"refused,omitempty"`
	// Free holds what providers said is left when they refused for capacity; it replaces the offer's figure.
	Free map[string]corev1.ResourceList `json:"free,omitempty"`
	// Again is set once the one fresh Discover after refusals for capacity was used.
	Again bool `json:"again,omitempty"`

	// Leaving is set once CA asked the instance back: it no longer counts, whatever its phase.
	Leaving    bool     `json:"leaving,omitempty"`
	Force      bool     `json:"force,omitempty"`
	Registered bool     `json:"registered,omitempty"`
	NotReady   bool     `json:"notReady,omitempty"`
	Stuck      string   `json:"stuck,omitempty"`
	Failure    *Failure `json:"failure,omitempty"` // the last one; the verdict once Failed

	// Missing counts the comparisons in a row that did not find slice or virtual node; NodeMissing is since when the Node
	// is missing alone.
	Missing     int        `json:"missing,omitempty"`
	NodeMissing *time.Time `json:"nodeMissing,omitempty"`
}

// Event is what just happened to an instance. Step events name the step and the attempt they conclude.
type Event struct {
	Kind    EventKind `json:"kind"`
	Step    Step      `json:"step,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Failure *Failure  `json:"failure,omitempty"`
	// Offer is what Select chose.
	Offer *Offer `json:"offer,omitempty"`
	// Free is what the provider has left, when the failure's code is NoCapacity.
	Free corev1.ResourceList `json:"free,omitempty"`
}

// ErrStale means that an event concludes a step that is not the instance's current one; nothing was changed.
type ErrStale struct {
	Event Event
	Phase Phase
	Step  Step
	At    int
}

func (e *ErrStale) Error() string {
	return fmt.Sprintf("event %s of step %s, attempt %d, is not for phase %s (step %s, attempt %d)",
		e.Event.Kind, e.Event.Step, e.Event.Attempt, e.Phase, e.Step, e.At)
}

// NewInstance books an instance: Pending.
func NewInstance(name string, spec GroupSpec, now time.Time) Instance {
	spec.Budgets = spec.Budgets.WithDefaults()
	return Instance{Name: name, Spec: spec, BookedAt: now, Phase: Pending, Since: now}
}

// ID is the instance id CA knows it by.
func (i *Instance) ID() string { return InstanceID(i.Spec.ID, i.Name) }

// Counts tells whether the instance is part of the target size (I1).
func (i *Instance) Counts() bool { return !i.Leaving && i.Phase.Row().Counts }

// Deadline is when the instance must be Ready.
func (i *Instance) Deadline() time.Time { return i.BookedAt.Add(i.Spec.Budgets.Total.Duration) }

// Apply is the only way an instance changes phase. It returns the move it made, with To filled in for laps; an event
// that is not for the current step is an *ErrStale and changes nothing; one that means nothing here is Ignored.
func (i *Instance) Apply(ev Event, now time.Time) (Move, error) {
	row := i.Phase.Row()
	m, ok := row.Moves[ev.Kind]
	if !ok {
		return Move{}, fmt.Errorf("event %q is not defined in phase %q", ev.Kind, i.Phase)
	}
	if ev.concludes() && (ev.Step != row.Step || ev.Attempt != i.Attempt) {
		return Move{}, &ErrStale{Event: ev, Phase: i.Phase, Step: row.Step, At: i.Attempt}
	}
	if m.Ignored {
		return m, nil
	}
	i.note(ev)
	switch {
	case m.Lap:
		m.To, m.Undo = i.lap(ev, now), true
	case i.Phase == Selecting && ev.Kind == Refused && len(i.Free) > 0 && !i.Again:
		// Capacity refusals may be out of date by now: one fresh look, and no more.
		i.Again, i.Free, m.To = true, nil, Discovering
	case i.Phase == Selecting && ev.Kind == Done:
		i.Attempt++
		i.Offer = ev.Offer
	}
	if m.Force {
		i.Force = true
	}
	if m.Stuck {
		i.Stuck = "cancelled"
	}
	if m.To != "" {
		i.Phase, i.Since = m.To, now
		if !m.To.Growing() { // there is no next lap: only the verdict is kept
			i.Refused, i.Free = nil, nil
		}
		i.Registered = i.Registered && (m.To == Joining || m.To == Ready) || m.To == Ready
	}
	return m, nil
}

// concludes tells whether the event ends a step, as opposed to a fact or a wish from outside. A cancellation or a deadline
// that names no step is one of the whole instance.
func (ev Event) concludes() bool {
	switch ev.Kind {
	case Done, Refused, GaveUp:
		return true
	case Cancelled, Deadline:
		return ev.Step != StepNone
	default:
		return false
	}
}

// note keeps what the event says beside the phase.
func (i *Instance) note(ev Event) {
	if ev.Failure != nil {
		i.Failure = ev.Failure
	}
	switch ev.Kind {
	case Registered:
		i.Registered, i.NotReady = true, false
	case NotReady:
		i.NotReady = true
	case Done:
		if i.Phase == Joining {
			i.Failure, i.NotReady = nil, false
		}
	}
}

// maxRefusal bounds, in characters, what is kept of why a provider is out.
const maxRefusal = 120

// lap refuses the attempt's provider and says where the instance goes on. With k offers a run has at most k+1 attempts:
// each offer is refused at most once until the one fresh Discover, and after that the next refusal is the end.
func (i *Instance) lap(ev Event, now time.Time) Phase {
	provider := ""
	if i.Offer != nil {
		provider = i.Offer.Provider
	}
	capacity := ev.Failure != nil && ev.Failure.Code == CodeNoCapacity
	if capacity {
		i.Free = maps.Clone(i.Free)
		if i.Free == nil {
			i.Free = map[string]corev1.ResourceList{}
		}
		free := ev.Free
		if free == nil {
			free = corev1.ResourceList{}
		}
		i.Free[provider] = free
	} else {
		i.Refused = maps.Clone(i.Refused)
		if i.Refused == nil {
			i.Refused = map[string]string{}
		}
		i.Refused[provider] = "refused"
		if ev.Failure != nil {
			i.Refused[provider] = shorten(ev.Failure.Message, maxRefusal)
		}
	}
	switch {
	case !now.Before(i.Deadline()), i.Again:
		return Failed
	case capacity:
		return Selecting
	default:
		return Discovering
	}
}

// Leave marks the instance as asked back by CA; it no longer counts. It returns false when it was so already; then a
// stuck one is set free to go on. Idempotent.
func (i *Instance) Leave() bool {
	was := i.Leaving || i.Phase.Shrinking() || i.Phase == Released
	i.Leaving, i.Stuck = true, ""
	return !was
}

// View is the instance as the group's snapshot shows it.
func (i *Instance) View() InstanceView {
	v := InstanceView{
		Name: i.Name, Phase: i.Phase, State: i.Phase.Row().State, Counts: i.Counts(), Attempt: i.Attempt, Since: i.Since,
		NotReady: i.NotReady, Stuck: i.Stuck, Registered: i.Registered,
	}
	if i.Leaving {
		v.State = StateDeleting
	}
	if i.Offer != nil {
		v.Provider = i.Offer.Provider
	}
	if i.Phase == Failed && !i.Leaving {
		v.Failure = i.Failure
		if v.Failure == nil {
			v.Failure = NewFailure(CodeInternal, "", "", "failed without a reason")
		}
	}
	return v
}
