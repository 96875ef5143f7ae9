package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Ledger contains all instances of a group. The target size is the number of instances that count, and is never stored
// separately (I1). Every change is applied completely or not at all; an operation that returns a *Refusal has changed
// nothing.
//
// A ledger is the state of the workflow nodegroup/<group>. Operations book instances, and Step processes every other
// event. Operations and Step append the work for the workflow to Commands.
type Ledger struct {
	Group string `json:"group"`
	Epoch string `json:"epoch"`
	// Began is the start of the epoch. The epoch's name may be a later time, if the clock of an earlier epoch was
	// ahead.
	Began   time.Time `json:"began,omitzero"`
	NextSeq int       `json:"nextSeq"`
	// LastBooked is the booking time that the newest instance name contains, see InstanceName; empty before the
	// epoch's first name.
	LastBooked string `json:"lastBooked,omitempty"`
	// Releases counts the instances that callers have released in this epoch, see Position.
	Releases int `json:"releases,omitempty"`
	// Starts counts the drivers started in this epoch, see Generation.
	Starts int `json:"starts,omitempty"`
	// Revision increases with each published change.
	Revision int64      `json:"revision"`
	Spec     *GroupSpec `json:"spec,omitempty"` // nil until the group is configured
	// Specs maps hashes to the specs under which instances were booked.
	Specs  map[string]*InstanceSpec `json:"specs,omitempty"`
	Paused bool                     `json:"paused,omitempty"`
	// Recovering reports that the existing objects are being listed. Nothing is booked or driven before the list arrives.
	Recovering bool `json:"recovering,omitempty"`
	// Inherits reports that no operator has paused or resumed the group since the ledger started. The recovery then
	// restores the pause that the observer has saved earlier.
	Inherits bool `json:"inherits,omitempty"`
	// Reverted is the newest epoch whose history was reverted, for example by a restored backup. A driver of this
	// epoch or an earlier one continues only if its objects exist, because the instance may have been released in the
	// lost part of the history.
	Reverted string `json:"reverted,omitempty"`
	// Waiting contains the views that arrived during the recovery, or before the group was configured.
	Waiting []View   `json:"waiting,omitempty"`
	Entries []*Entry `json:"entries,omitempty"` // oldest first
	// Released lists the instances that were released recently, oldest first. They are never adopted again.
	Released []ReleasedInstance `json:"released,omitempty"`
	// Failures contains, for each provider, the times of recent failures that count against this provider, oldest
	// first.
	Failures map[string][]time.Time `json:"failures,omitempty"`
	// Standby lists the peerings that the group keeps ready, the best first. StandbySeq is the number of standbys that
	// were ever booked in this epoch. StandbyRanked is the time at which the providers were last ranked for them.
	Standby       []Standby `json:"standby,omitempty"`
	StandbySeq    int       `json:"standbySeq,omitempty"`
	StandbyRanked time.Time `json:"standbyRanked,omitzero"`
	Ops           Ring      `json:"ops"`
	// Condition describes the fault of the group as a whole; empty without one.
	Condition string `json:"condition,omitempty"`
	// Notice is the server's message about the configured spec.
	Notice   GroupNotice `json:"notice,omitzero"`
	Commands Commands    `json:"commands"`
	Round    Comparison  `json:"round"`
	// Recheck lists the instances to inspect next, not before RecheckAt.
	Recheck   []string  `json:"recheck,omitempty"`
	RecheckAt time.Time `json:"recheckAt,omitzero"`
	// Cost is the cost of the nodes. CostDays contains the costs of past days, oldest first.
	Cost     money.Cost      `json:"cost,omitzero"`
	CostDays []money.CostDay `json:"costDays,omitempty"`
	// CostFrom is the first day that CostDays can contain; empty when CostDays starts at Cost.Since.
	CostFrom string `json:"costFrom,omitempty"`
	// Gap is a gap in the group's history whose costs are not added yet; nil without a gap.
	Gap *Gap `json:"gap,omitempty"`
	// Choices lists the group's last decisions, oldest first.
	Choices []Choice `json:"choices,omitempty"`

	index map[string]*Entry
	log   []Transition
}

// Entry is an instance in the state of its group.
type Entry struct {
	Instance
	Driver DriverRef `json:"driver,omitzero"`
	// Changed is the ledger's revision at which the entry last changed. A round of the observer that has read an
	// older revision does not change the entry.
	Changed int64 `json:"changed,omitempty"`
	// New reports that this group booked the instance itself, and that no driver was ever started for it.
	New bool `json:"new,omitempty"`
	// Kept reports that the observer keeps the instance's Node because volumes are on its provider. The group then
	// refuses to release the instance.
	Kept bool `json:"kept,omitempty"`
	// Undone is the newest attempt whose undo was requested.
	Undone int `json:"undone,omitempty"`
	// Missing counts the consecutive lists without the slice or the VirtualNode. NodeMissing is the time since which
	// only the Node is missing.
	Missing int `json:"missing,omitempty"`
	// Gone is set while the instance's slice is missing: it is the time at which a round last found the slice. The
	// costs of the instance end at that time.
	Gone *time.Time `json:"gone,omitempty"`
	// Settled reports that the amounts since Gone have been subtracted and that the instance causes no further costs.
	Settled     bool       `json:"settled,omitempty"`
	NodeMissing *time.Time `json:"nodeMissing,omitempty"`
}

// DriverRef identifies the workflow that drives an instance now; the zero value means no driver.
type DriverRef struct {
	Kind       DriverKind `json:"kind,omitempty"`
	Generation Generation `json:"generation,omitzero"`
	// Sequence is the sequence of the last accepted view. LastSeen is the time of the driver's last message.
	Sequence int       `json:"sequence,omitempty"`
	LastSeen time.Time `json:"lastSeen,omitzero"`
	// Began is the start of the run whose views are accepted.
	Began time.Time `json:"began,omitzero"`
	// Start is the id of the newest command that starts the driver.
	Start int64 `json:"start,omitempty"`
	// Stopped reports that the driver was stopped before its work was done. The group starts another driver when the
	// workflow of this driver has closed.
	Stopped bool `json:"stopped,omitempty"`
	// Sent contains the facts that the group has sent to the driver in orders, so that it sends each fact once.
	Sent Order `json:"sent,omitzero"`
	// Resends is the number of the last order to repeat the request of the present attempt; ResendAt is the time of
	// the next such order.
	Resends  int       `json:"resends,omitempty"`
	ResendAt time.Time `json:"resendAt,omitzero"`
}

// ReleasedInstance records an instance that was released, and the time.
type ReleasedInstance struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// Comparison contains the ledger's record of the observer's last round.
type Comparison struct {
	Last RoundID `json:"last,omitzero"`
	// Unbooked lists the object names that the last round found without a booking.
	Unbooked []string `json:"unbooked,omitempty"`
	// EmptySince is the time since which the lists contain no object of the group.
	EmptySince *time.Time `json:"emptySince,omitempty"`
}

// ringSize bounds the number of remembered operation ids. An operation takes seconds, and a group receives at most a
// few operations per second, so the ids of several minutes are remembered.
const ringSize = 256

// Ring stores the last operation ids, oldest first. It is part of a state that survives continue-as-new.
type Ring struct {
	IDs []string `json:"ids,omitempty"`
}

// Has reports whether the ring contains id.
func (r *Ring) Has(id string) bool { return slices.Contains(r.IDs, id) }

// Add stores id, and removes the oldest id of a full ring.
func (r *Ring) Add(id string) {
	r.IDs = append(r.IDs, id)
	r.IDs = r.IDs[max(0, len(r.IDs)-ringSize):]
}

// Choice records a decision about an instance: the provider of an attempt, or the failure of the instance.
type Choice struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	Attempt  int       `json:"attempt,omitempty"`
	// Provider is the chosen provider; empty when the instance failed.
	Provider string `json:"provider,omitempty"`
	// Reason is the reason for the choice, or the failure, in at most 160 characters.
	Reason string `json:"reason,omitempty"`
}

// Transition describes one change of an instance's phase, for the log.
type Transition struct {
	Instance, Provider string
	From, To           Phase
	Attempt            int
	Event              EventKind
	Failure            *Failure
}

// NewLedger returns the ledger of a group that has no spec yet and first lists the existing objects.
func NewLedger(group string, now time.Time) *Ledger {
	l := &Ledger{Group: group, Epoch: NewEpoch(now), Began: now, Recovering: true, Inherits: true}
	l.Commands.Add(Command{Kind: CommandRecover})
	return l.Restore()
}

// Restore rebuilds the index of a decoded ledger, and returns the ledger.
func (l *Ledger) Restore() *Ledger {
	l.index = make(map[string]*Entry, len(l.Entries))
	for _, e := range l.Entries {
		e.Spec = l.Specs[e.SpecHash]
		l.index[e.Name] = e
	}
	return l
}

// Find returns the entry with this name, or nil.
func (l *Ledger) Find(name string) *Entry { return l.index[name] }

// Target returns the target size: the number of instances that count towards it (see Counts).
func (l *Ledger) Target() (n int) {
	for _, e := range l.Entries {
		if e.Counts() {
			n++
		}
	}
	return n
}

// epochEnd returns the end of the second in which the epoch began. The group books nothing before that time. Therefore
// it never assigns a name twice (I2), even if it is terminated and immediately started again.
func (l *Ledger) epochEnd() time.Time {
	if l.Began.IsZero() {
		return time.Time{}
	}
	return l.Began.Truncate(time.Second).Add(time.Second)
}

// newest returns the booking time that the newest instance name contains. Before the first name it returns the epoch,
// which has the same format.
func (l *Ledger) newest() string { return cmp.Or(l.LastBooked, l.Epoch) }

// Transitions returns the changes of phases since the last call.
func (l *Ledger) Transitions() []Transition {
	log := l.log
	l.log = nil
	return log
}

// add books an entry. Entries with the same spec hash share one spec.
func (l *Ledger) add(i Instance) *Entry {
	if l.Specs == nil {
		l.Specs = map[string]*InstanceSpec{}
	}
	l.Specs[i.SpecHash] = cmp.Or(l.Specs[i.SpecHash], i.Spec)
	i.Spec = l.Specs[i.SpecHash]
	e := &Entry{Instance: i}
	l.Entries = append(l.Entries, e)
	l.index[e.Name] = e
	l.changed(e)
	return e
}

// changed raises the revision, which publishes the ledger, and marks the entries as changed.
func (l *Ledger) changed(entries ...*Entry) {
	l.Revision++
	for _, e := range entries {
		e.Changed = l.Revision
	}
}

// apply applies the event to the instance, see Instance.Apply. An ignored event changes nothing.
func (l *Ledger) apply(e *Entry, ev Event, now time.Time) {
	from, wasStuck := e.Phase, e.Stuck
	m, _ := e.Apply(ev, now) // the event concludes no step, so it is never stale
	if m.Ignored {
		return
	}
	l.changed(e)
	if e.Phase != from || e.Stuck != wasStuck {
		l.moved(e, from, ev.Kind, ev.Failure)
	}
}

// ended returns the reference to a driver that has ended. It keeps the generation and the sequence, so that the group
// recognizes the driver's later messages as old.
func (d DriverRef) ended() DriverRef {
	return DriverRef{Generation: d.Generation, Sequence: d.Sequence}
}

// moved logs a change of an instance's phase.
func (l *Ledger) moved(e *Entry, from Phase, ev EventKind, f *Failure) {
	l.log = append(l.log, Transition{
		Instance: e.Name, Provider: e.Provider(), From: from, To: e.Phase, Attempt: e.Attempt, Event: ev, Failure: f,
	})
}

// These constants bound the record of released instances.
const (
	goneTTL = time.Hour
	goneMax = 2000
)

// sweep removes released instances, and keeps their names for goneTTL.
func (l *Ledger) sweep(now time.Time) {
	l.Entries = slices.DeleteFunc(l.Entries, func(e *Entry) bool {
		if e.Phase != Released || e.Driver.Kind != "" {
			return false
		}
		l.Revision++
		l.Released = append(l.Released, ReleasedInstance{Name: e.Name, At: now})
		delete(l.index, e.Name)
		return true
	})
	for len(l.Released) > 0 && (now.Sub(l.Released[0].At) > goneTTL || len(l.Released) > goneMax) {
		l.Released = l.Released[1:]
	}
	maps.DeleteFunc(l.Specs, func(hash string, _ *InstanceSpec) bool {
		return !slices.ContainsFunc(l.Entries, func(e *Entry) bool { return e.SpecHash == hash })
	})
}

// wasReleased reports whether an instance with this name was released recently.
func (l *Ledger) wasReleased(name string) bool {
	return slices.ContainsFunc(l.Released, func(g ReleasedInstance) bool { return g.Name == name })
}

// restart resets the ledger and lists the existing objects. It keeps only the spec, the pause, the costs and the
// decisions. Regardless of the clock, the new epoch is later than the ledger's epoch, and later than the epoch that a
// caller has seen. Otherwise a clock that was ahead would make the group reset repeatedly.
func (l *Ledger) restart(seen string, now time.Time) {
	fresh := NewLedger(l.Group, now)
	for _, earlier := range []string{l.Epoch, seen} {
		if !EpochBefore(earlier, fresh.Epoch) { // in the same second, or after a clock that was ahead
			fresh.Epoch = nextEpoch(earlier)
		}
	}
	fresh.Spec, fresh.Paused, fresh.log, fresh.Notice = l.Spec, l.Paused, l.log, l.Notice
	fresh.Inherits, fresh.Reverted = l.Inherits, l.Reverted
	fresh.Choices = l.Choices
	fresh.Cost, fresh.CostDays, fresh.CostFrom = l.Cost, l.CostDays, l.CostFrom
	fresh.Gap = &Gap{Since: l.Cost.At, Position: l.Position()}
	fresh.Cost.Run(nil)                              // closeGap later counts the nodes that exist
	fresh.Commands = Commands{Last: l.Commands.Last} // results of old commands must not match new ones
	fresh.Commands.Add(Command{Kind: CommandRecover})
	*l = *fresh
}

// revert resets the ledger because the caller has seen a newer position of this group. In the lost part of the history,
// CA may have deleted any instance, and an operator may have paused or resumed the group.
func (l *Ledger) revert(seen Position, now time.Time) {
	past := l.Epoch
	if EpochBefore(past, seen.Epoch) {
		past = seen.Epoch
	}
	l.restart(seen.Epoch, now)
	l.Reverted, l.Inherits = past, true
}
