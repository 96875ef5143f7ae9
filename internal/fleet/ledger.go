package fleet

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Ledger holds all instances of a group. The target size is counted from it and never stored apart (I1). Every change
// is all or nothing; a *Refusal changed nothing.
//
// It is the state of the workflow nodegroup/<group>: operations book, Step takes everything else that can happen, and
// both leave in Commands what is to be done outside.
type Ledger struct {
	Group string `json:"group"`
	Epoch string `json:"epoch"`
	// Began is when the epoch began. Its name is later after a clock that was ahead.
	Began   time.Time `json:"began,omitzero"`
	NextSeq int       `json:"nextSeq"`
	// LastBooked is the second in the newest name; empty before the epoch's first.
	LastBooked string `json:"lastBooked,omitempty"`
	// Starts counts the drivers started in this epoch, see Generation.
	Starts int `json:"starts,omitempty"`
	// Revision rises with each change that is published.
	Revision int64      `json:"revision"`
	Spec     *GroupSpec `json:"spec,omitempty"` // nil until the group is configured
	// Specs are those that instances were booked under, by hash.
	Specs  map[string]*InstanceSpec `json:"specs,omitempty"`
	Paused bool                     `json:"paused,omitempty"`
	// Recovering: what exists is being listed; nothing is booked or driven before.
	Recovering bool `json:"recovering,omitempty"`
	// Inherits: no operator has paused or resumed the group in this life. The recovery then takes over what the observer
	// has saved of an earlier life.
	Inherits bool `json:"inherits,omitempty"`
	// Reverted is the newest epoch whose history was reverted, as by a restored backup. A driver of it, or of one before,
	// goes on only if its objects exist: the instance may have been released in what was lost.
	Reverted string `json:"reverted,omitempty"`
	// Waiting are views that came meanwhile, or before the group was configured.
	Waiting []View   `json:"waiting,omitempty"`
	Entries []*Entry `json:"entries,omitempty"` // oldest first
	// Released are the instances released a while ago, oldest first. They are never adopted again.
	Released []ReleasedInstance `json:"released,omitempty"`
	// Failures are when providers have failed the group's instances lately, oldest first.
	Failures map[string][]time.Time `json:"failures,omitempty"`
	// Standby are the peerings that the group keeps ready, the best first; StandbySeq counts their holds, and
	// StandbyRanked is when the providers were last ranked for them.
	Standby       []Standby `json:"standby,omitempty"`
	StandbySeq    int       `json:"standbySeq,omitempty"`
	StandbyRanked time.Time `json:"standbyRanked,omitzero"`
	Ops           Ring      `json:"ops"`
	// Condition is what is wrong with the group as a whole.
	Condition string `json:"condition,omitempty"`
	// Notice is what the server says of the configured spec.
	Notice   GroupNotice `json:"notice,omitzero"`
	Commands Commands    `json:"commands"`
	Round    Comparison  `json:"round"`
	// Recheck are the instances to inspect next, not before RecheckAt.
	Recheck   []string  `json:"recheck,omitempty"`
	RecheckAt time.Time `json:"recheckAt,omitzero"`
	// Cost is what the nodes cost, CostDays the days that are over, oldest first.
	Cost     money.Cost      `json:"cost,omitzero"`
	CostDays []money.CostDay `json:"costDays,omitempty"`
	// CostFrom is the first day that CostDays may have; empty when they go back to Cost.Since.
	CostFrom string `json:"costFrom,omitempty"`
	// Gap is a gap in the group's history that is not counted yet; nil without a gap.
	Gap *Gap `json:"gap,omitempty"`
	// Choices are the group's last decisions, oldest first.
	Choices []Choice `json:"choices,omitempty"`

	index map[string]*Entry
	log   []Transition
}

// Entry is an instance as its group keeps it.
type Entry struct {
	Instance
	Driver DriverRef `json:"driver,omitzero"`
	// Changed is the ledger's revision with which the entry last changed: a round that has read an older revision does not
	// judge it.
	Changed int64 `json:"changed,omitempty"`
	// New: the instance was booked here, and no driver was ever started for it.
	New bool `json:"new,omitempty"`
	// Kept: the observer keeps its Node for the volumes of its provider, so it is not released.
	Kept bool `json:"kept,omitempty"`
	// Undone is the newest attempt whose undo was asked for.
	Undone int `json:"undone,omitempty"`
	// Missing counts the looks in a row that did not find slice or VirtualNode; NodeMissing is since when the Node
	// is missing alone.
	Missing int `json:"missing,omitempty"`
	// Gone is when a round last had the instance's slice, since the slice is missing: the instance costs until then.
	Gone *time.Time `json:"gone,omitempty"`
	// Settled: the amounts since Gone have been subtracted, and the instance costs nothing any more.
	Settled     bool       `json:"settled,omitempty"`
	NodeMissing *time.Time `json:"nodeMissing,omitempty"`
}

// DriverRef is the workflow that drives an instance now; the zero value is none.
type DriverRef struct {
	Kind       DriverKind `json:"kind,omitempty"`
	Generation Generation `json:"generation,omitzero"`
	// Sequence is that of the last view taken, LastSeen the time of the last message of the driver.
	Sequence int       `json:"sequence,omitempty"`
	LastSeen time.Time `json:"lastSeen,omitzero"`
	// Began is that of the run whose views are taken.
	Began time.Time `json:"began,omitzero"`
	// Start is the newest command that starts it.
	Start int64 `json:"start,omitempty"`
	// Stopped: it sent its last view, and is replaced when it is closed.
	Stopped bool `json:"stopped,omitempty"`
	// Sent is the order that was sent to it; flags are only added.
	Sent Order `json:"sent,omitzero"`
	// Resends counts the orders to repeat the request of the present attempt; ResendAt is when the next one is due.
	Resends  int       `json:"resends,omitempty"`
	ResendAt time.Time `json:"resendAt,omitzero"`
}

// ReleasedInstance is an instance that was released.
type ReleasedInstance struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// Comparison is what a ledger remembers of the last round.
type Comparison struct {
	Last RoundID `json:"last,omitzero"`
	// Unbooked are the object names that the last round found without a booking.
	Unbooked []string `json:"unbooked,omitempty"`
	// EmptySince is since when lists show nothing at all of Ready instances.
	EmptySince *time.Time `json:"emptySince,omitempty"`
}

// ringSize bounds how many operation ids are remembered. An operation lives for seconds, and a group sees a few a
// second at most, so this is minutes of memory.
const ringSize = 256

// Ring remembers the last operation ids, oldest first. It survives continue-as-new with the state it is part of.
type Ring struct {
	IDs []string `json:"ids,omitempty"`
}

// Has tells whether id is remembered.
func (r *Ring) Has(id string) bool { return slices.Contains(r.IDs, id) }

// Add remembers id, and forgets the oldest when full.
func (r *Ring) Add(id string) {
	r.IDs = append(r.IDs, id)
	r.IDs = r.IDs[max(0, len(r.IDs)-ringSize):]
}

// Choice is a Decision as its group remembers it: the provider that an attempt asks, or that the instance failed.
type Choice struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance"`
	Attempt  int       `json:"attempt,omitempty"`
	// Provider is the one chosen; empty when the instance failed.
	Provider string `json:"provider,omitempty"`
	// Reason is what spoke for the provider, or what failed, at most 160 characters.
	Reason string `json:"reason,omitempty"`
}

// Transition is one change of an instance's phase, for the log.
type Transition struct {
	Instance, Provider string
	From, To           Phase
	Attempt            int
	Event              EventKind
	Failure            *Failure
}

// NewLedger is a group that has not been configured, and first lists what exists.
func NewLedger(group string, now time.Time) *Ledger {
	l := &Ledger{Group: group, Epoch: NewEpoch(now), Began: now, Recovering: true, Inherits: true}
	l.Commands.Add(Command{Kind: CommandRecover})
	return l.Restore()
}

// Restore makes a decoded ledger usable, and returns it.
func (l *Ledger) Restore() *Ledger {
	l.index = make(map[string]*Entry, len(l.Entries))
	for _, e := range l.Entries {
		e.Spec = l.Specs[e.SpecHash]
		l.index[e.Name] = e
	}
	return l
}

// Find returns the entry of that name, or nil.
func (l *Ledger) Find(name string) *Entry { return l.index[name] }

// Target is the number of instances that count.
func (l *Ledger) Target() (n int) {
	for _, e := range l.Entries {
		if e.Counts() {
			n++
		}
	}
	return n
}

// epochOver is when the second is over in which the epoch began. Nothing is booked before, so a group that is
// terminated and started again at once does not use the same names in its next life (I2).
func (l *Ledger) epochOver() time.Time {
	if l.Began.IsZero() {
		return time.Time{}
	}
	return l.Began.Truncate(time.Second).Add(time.Second)
}

// newest is the second in the newest name, or that of the epoch.
func (l *Ledger) newest() string { return cmp.Or(l.LastBooked, l.Epoch) }

// Transitions returns the changes of phases since it was last called.
func (l *Ledger) Transitions() []Transition {
	log := l.log
	l.log = nil
	return log
}

// add books an entry under the spec in force, or one that the caller names.
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

// changed publishes the ledger anew. These entries have changed.
func (l *Ledger) changed(entries ...*Entry) {
	l.Revision++
	for _, e := range entries {
		e.Changed = l.Revision
	}
}

// apply moves an instance by the table. An event that means nothing is no change.
func (l *Ledger) apply(e *Entry, ev Event, now time.Time) {
	from, wasStuck := e.Phase, e.Stuck
	m, _ := e.Apply(ev, now) // it concludes no step, and so is never stale
	if m.Ignored {
		return
	}
	l.changed(e)
	if e.Phase != from || e.Stuck != wasStuck {
		l.moved(e, from, ev.Kind, ev.Failure)
	}
}

// ended is the record of a driver that is over: what it still tells is old.
func (d DriverRef) ended() DriverRef {
	return DriverRef{Generation: d.Generation, Sequence: d.Sequence}
}

// moved logs that an instance is somewhere else.
func (l *Ledger) moved(e *Entry, from Phase, ev EventKind, f *Failure) {
	l.log = append(l.log, Transition{
		Instance: e.Name, Provider: e.Provider(), From: from, To: e.Phase, Attempt: e.Attempt, Event: ev, Failure: f,
	})
}

// What is remembered of released instances.
const (
	goneTTL = time.Hour
	goneMax = 2000
)

// sweep forgets released instances: their names are kept for a while.
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

// wasReleased reports whether the name was released a while ago.
func (l *Ledger) wasReleased(name string) bool {
	return slices.ContainsFunc(l.Released, func(g ReleasedInstance) bool { return g.Name == name })
}

// beginAnew forgets all but the spec, the pause, the costs and the decisions, and what exists is to be listed. The
// new epoch is later than the ledger's epoch and than the epoch that the caller has seen, whatever the clock shows. A
// clock that was ahead would otherwise make the group begin anew again and again.
func (l *Ledger) beginAnew(seen string, now time.Time) {
	fresh := NewLedger(l.Group, now)
	for _, earlier := range []string{l.Epoch, seen} {
		if !EpochBefore(earlier, fresh.Epoch) { // within its second, or after one that was ahead
			fresh.Epoch = nextEpoch(earlier)
		}
	}
	fresh.Spec, fresh.Paused, fresh.log, fresh.Notice = l.Spec, l.Paused, l.log, l.Notice
	fresh.Inherits, fresh.Reverted = l.Inherits, l.Reverted
	fresh.Choices = l.Choices
	fresh.Cost, fresh.CostDays, fresh.CostFrom = l.Cost, l.CostDays, l.CostFrom
	fresh.Gap = &Gap{Since: l.Cost.At, Position: Position{Epoch: l.Epoch, Revision: l.Revision,
		Booked: l.NextSeq}}
	fresh.Cost.Run(nil)                              // closeGap counts the nodes that exist
	fresh.Commands = Commands{Last: l.Commands.Last} // the results of what is still executed answer none of the new ones
	fresh.Commands.Add(Command{Kind: CommandRecover})
	*l = *fresh
}

// revert starts the ledger again because the caller has seen a newer position of this group. CA may have deleted each
// instance of the reverted history, and an operator may have paused or resumed the group since.
func (l *Ledger) revert(seen Position, now time.Time) {
	past := l.Epoch
	if EpochBefore(past, seen.Epoch) {
		past = seen.Epoch
	}
	l.beginAnew(seen.Epoch, now)
	l.Reverted, l.Inherits = past, true
}
