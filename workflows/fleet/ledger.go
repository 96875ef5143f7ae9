package fleet

import (
	"fmt"
	"slices"
	"time"
)

// Ledger holds all instances of a group. The target size is counted from it and never stored apart (I1). Every change is
// all or nothing; a *Refusal changed nothing.
type Ledger struct {
	Spec      *GroupSpec `json:"spec,omitempty"` // nil until the group is configured
	Epoch     string     `json:"epoch"`
	NextSeq   int        `json:"nextSeq"`
	Sequence  int64      `json:"sequence"` // of the last snapshot
	Frozen    bool       `json:"frozen,omitempty"`
	Instances []Instance `json:"instances,omitempty"` // oldest first
	Ops       Ring       `json:"ops"`
	// Unbooked are the object names that the last comparison found without a booking.
	Unbooked map[string]bool `json:"unbooked,omitempty"`
	// EmptySince is since when comparisons find nothing at all of several Ready instances.
	EmptySince *time.Time `json:"emptySince,omitempty"`
}

// Operation is one genuine call of a client. The same id again gets the first outcome; run after GiveUpAt it is refused,
// so that a call whose caller has gone cannot come back as a ghost.
type Operation struct {
	ID       string    `json:"id"`
	GiveUpAt time.Time `json:"giveUpAt"`
}

// Target is the number of instances that count.
func (l *Ledger) Target() int {
	n := 0
	for i := range l.Instances {
		if l.Instances[i].Counts() {
			n++
		}
	}
	return n
}

// Find returns the instance of that name, or nil.
func (l *Ledger) Find(name string) *Instance {
	for i := range l.Instances {
		if l.Instances[i].Name == name {
			return &l.Instances[i]
		}
	}
	return nil
}

// Admit says whether the operation may run now: a *Refusal when its caller has given up or the group has no spec yet.
// known is true when it has run before; then it must not run again.
func (l *Ledger) Admit(op Operation, now time.Time) (known bool, err error) {
	if op.ID == "" {
		return false, Refuse(RefusedInvalid, "operation without id")
	}
	if l.Ops.Has(op.ID) {
		return true, nil
	}
	if now.After(op.GiveUpAt) {
		return false, Refuse(RefusedExpired, fmt.Sprintf("operation %s came %s after its caller gave up", op.ID, now.Sub(op.GiveUpAt).Round(time.Millisecond)))
	}
	if l.Spec == nil {
		return false, Refuse(RefusedNotInitialised, "the group has no configuration yet; it comes with the server's next Refresh")
	}
	return false, nil
}

// Grow books delta instances, Pending. Errors: Invalid (delta < 1), MaxSize, Precondition (frozen).
func (l *Ledger) Grow(delta int, now time.Time) error {
	if err := l.CanGrow(delta); err != nil {
		return err
	}
	for range delta {
		l.NextSeq++
		l.Instances = append(l.Instances, NewInstance(InstanceName(l.Spec.ID, l.Epoch, l.NextSeq), *l.Spec, now))
	}
	return nil
}

// CanGrow is Grow's verdict without its effect.
func (l *Ledger) CanGrow(delta int) error {
	target := l.Target()
	switch {
	case delta < 1:
		return Refuse(RefusedInvalid, fmt.Sprintf("delta must be at least 1, not %d", delta))
	case l.Frozen:
		return Refuse(RefusedPrecondition, fmt.Sprintf("group %s is frozen; unfreeze it to scale out", l.Spec.ID))
	case delta > l.Spec.Max || target+delta > l.Spec.Max: // the first part guards the sum against overflow
		return Refuse(RefusedMax, fmt.Sprintf("group %s: target size %d + %d is over max %d", l.Spec.ID, target, delta, l.Spec.Max))
	}
	return nil
}

// Shrink takes back min(delta, counted and not registered) instances, youngest first (I4). Errors: Invalid (delta < 1),
// Precondition when there is none to take back.
func (l *Ledger) Shrink(delta int) error {
	if err := l.CanShrink(delta); err != nil {
		return err
	}
	for i := len(l.Instances) - 1; i >= 0 && delta > 0; i-- {
		if inst := &l.Instances[i]; inst.cancellable() {
			inst.Leave()
			delta--
		}
	}
	return nil
}

// CanShrink is Shrink's verdict without its effect.
func (l *Ledger) CanShrink(delta int) error {
	if delta < 1 {
		return Refuse(RefusedInvalid, fmt.Sprintf("delta must be negative, not %d", -delta))
	}
	if !slices.ContainsFunc(l.Instances, func(i Instance) bool { return i.cancellable() }) {
		return Refuse(RefusedPrecondition, fmt.Sprintf("group %s: no instance that is still to come can be cancelled; delete nodes by name", l.Spec.ID))
	}
	return nil
}

func (i *Instance) cancellable() bool { return i.Counts() && !i.Registered && i.Phase != Ready }

// Release asks the named instances back. Idempotent per instance: a name that is leaving or gone already is success, and
// a unit is given back once (I4). Error: Invalid when a name is not this group's; then nothing is released.
func (l *Ledger) Release(names []string) error {
	if err := l.CanRelease(names); err != nil {
		return err
	}
	for _, n := range names {
		if inst := l.Find(n); inst != nil {
			inst.Leave()
		}
	}
	return nil
}

// CanRelease is Release's verdict without its effect.
func (l *Ledger) CanRelease(names []string) error {
	for _, n := range names {
		if !isInstanceOf(n, l.Spec.ID) {
			return Refuse(RefusedInvalid, fmt.Sprintf("instance %q is not of group %s", n, l.Spec.ID))
		}
	}
	return nil
}

// Configure puts a spec in force. Instances booked before keep theirs. Error: Invalid when it is another group's.
func (l *Ledger) Configure(spec GroupSpec) error {
	if l.Spec != nil && l.Spec.ID != spec.ID {
		return Refuse(RefusedInvalid, fmt.Sprintf("group %s cannot become %s; use a new group", l.Spec.ID, spec.ID))
	}
	spec.Budgets = spec.Budgets.WithDefaults()
	l.Spec = &spec
	return nil
}

// Sweep forgets released instances, but not those that busy still has to hear of.
func (l *Ledger) Sweep(busy func(name string) bool) {
	l.Instances = slices.DeleteFunc(l.Instances, func(i Instance) bool { return i.Phase == Released && !busy(i.Name) })
}

// Snapshot counts up the sequence and returns what the group publishes.
func (l *Ledger) Snapshot(now time.Time) Snapshot {
	l.Sequence++
	s := Snapshot{Epoch: l.Epoch, Sequence: l.Sequence, Target: l.Target(), Frozen: l.Frozen, Spec: l.Spec, Booked: l.NextSeq, At: now}
	if l.Spec != nil {
		s.Group, s.Min, s.Max, s.SpecHash = l.Spec.ID, l.Spec.Min, l.Spec.Max, l.Spec.Hash()
	}
	for i := range l.Instances {
		if l.Instances[i].Phase != Released {
			s.Instances = append(s.Instances, l.Instances[i].View())
		}
	}
	return s
}
