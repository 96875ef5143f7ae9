package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Snapshot is what a NodeGroup publishes in its memo, at most once a workflow task: all that the gRPC server answers
// from. A snapshot replaces another only when Newer says so.
type Snapshot struct {
	Group string `json:"group"`
	Epoch string `json:"epoch"`
	// Revision rises with each change within an epoch.
	Revision int64 `json:"revision"`
	// Target is the number of instances that count (I1).
	Target int `json:"target"`
	Min    int `json:"min"`
	Max    int `json:"max"`
	// SpecHash is the hash of the GroupSpec in force, see Hash.
	SpecHash string `json:"specHash"`
	// Spec is the one in force; nil until the group is configured.
	Spec *GroupSpec `json:"spec,omitempty"`
	// Booked is how many instances were ever booked in this epoch.
	Booked    int            `json:"booked,omitempty"`
	Paused    bool           `json:"paused,omitempty"`
	Instances []InstanceView `json:"instances,omitempty"` // in the order of their booking
	// Standby are the peerings that the group keeps ready.
	Standby []Standby `json:"standby,omitempty"`
	// Condition is what is wrong with the group as a whole; empty when nothing is.
	Condition string `json:"condition,omitempty"`
	// Notice is what the server says of the configured spec.
	Notice Notice `json:"notice,omitzero"`
	// Cost is what the group's nodes cost.
	Cost money.Cost `json:"cost,omitzero"`
	// At is the workflow's clock when the snapshot was taken.
	At time.Time `json:"at"`
}

// Change is what an operation answers: what is different from a Position that the caller named.
type Change struct {
	Since Position `json:"since,omitzero"`
	// Snapshot has only the rows that changed since, unless Whole.
	Snapshot Snapshot `json:"snapshot"`
	Whole    bool     `json:"whole,omitempty"`
	// Gone are the instances that are no longer listed.
	Gone []string `json:"gone,omitempty"`
	// Sum tells whether the rows that come of it are those of the group. They are not when the caller's position is of a
	// history that a restored backup of Temporal has replaced, and that has gone further since.
	Sum uint64 `json:"sum,omitempty"`
}

// InstanceView is one instance in a Snapshot. Released instances are not listed.
type InstanceView struct {
	Name   string `json:"name"`
	Phase  Phase  `json:"phase"`
	State  State  `json:"state"`
	Counts bool   `json:"counts,omitempty"`
	// Failure is why it has failed, or was lost.
	Failure *Failure `json:"failure,omitempty"`
	Attempt int      `json:"attempt,omitempty"`
	// Provider is that of the current attempt, empty before one is selected.
	Provider string    `json:"provider,omitempty"`
	Since    time.Time `json:"since"`
	NotReady bool      `json:"notReady,omitempty"`
	// NotReadySince is since when, as far as the group has heard.
	NotReadySince time.Time `json:"notReadySince,omitzero"`
	Stuck         string    `json:"stuck,omitempty"`
	// Registered is true once the Node carries the instance id as providerID.
	Registered bool `json:"registered,omitempty"`
}

// Row is the instance as the group's snapshot shows it.
func (i *Instance) Row() InstanceView {
	v := InstanceView{
		Name: i.Name, Phase: i.Phase, State: i.Phase.Row().State, Counts: i.Counts(), Attempt: i.Attempt, Since: i.Since,
		NotReady: i.NotReady, NotReadySince: i.NotReadySince, Stuck: i.Stuck, Registered: i.Registered,
		Provider: i.Provider(),
	}
	if i.Leaving {
		v.State = StateDeleting
	}
	if i.Force && i.Phase.Shrinking() && i.Failure != nil && i.Failure.Code == CodeLost {
		v.Failure = i.Failure
	}
	if i.Phase == Failed && !i.Leaving {
		v.Failure = cmp.Or(i.Failure, NewFailure(CodeInternal, "", "", "failed without a reason"))
	}
	return v
}

// ID is the instance id CA knows it by.
func (v InstanceView) ID(group string) string { return InstanceID(group, v.Name) }

// Peered is how many peerings the group keeps ready, by the state of their holds.
func (s Snapshot) Peered(state HoldState) (n int) {
	for _, h := range s.Standby {
		if h.State == state {
			n++
		}
	}
	return n
}

// Position is how far somebody has seen a group: an epoch and a revision in it.
type Position struct {
	Epoch    string `json:"epoch,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	// Booked is how many names the epoch had given: a history that went back may have overtaken the revision since.
	Booked int `json:"booked,omitempty"`
}

// Position is how far the snapshot sees.
func (s Snapshot) Position() Position {
	return Position{Epoch: s.Epoch, Revision: s.Revision, Booked: s.Booked}
}

// Newer reports whether s may replace old: a later life of the group, or a later change in the same one.
func (s Snapshot) Newer(old Snapshot) bool { return old.Position().Before(s.Position()) }

// Before reports whether p is an earlier position than o.
func (p Position) Before(o Position) bool {
	return EpochBefore(p.Epoch, o.Epoch) || p.Epoch == o.Epoch && p.Revision < o.Revision
}

// Apply returns the snapshot that the change leads to from old. ok is false when the change does not build on old: it
// is of another epoch, begins later than old ends, or is of another history. Then, and when old is newer, old is to be
// kept or read again.
func (c Change) Apply(old Snapshot) (s Snapshot, ok bool) {
	s = c.Snapshot
	if c.Whole {
		return s, true
	}
	if old.Epoch != s.Epoch || old.Revision < c.Since.Revision {
		return old, false
	}
	if old.Revision >= s.Revision {
		return old, true
	}
	gone := func(row InstanceView) bool { return slices.Contains(c.Gone, row.Name) }
	merged := slices.DeleteFunc(slices.Clone(old.Instances), gone)
	at := make(map[string]int, len(merged))
	for n, row := range merged {
		at[row.Name] = n
	}
	for _, row := range s.Instances {
		if n, known := at[row.Name]; known {
			merged[n] = row
		} else {
			merged = append(merged, row)
		}
	}
	if sum(merged) != c.Sum {
		return old, false
	}
	s.Instances = merged
	return s, true
}

// sum is a checksum of rows as they are sent.
func sum(rows []InstanceView) uint64 {
	if len(rows) == 0 {
		return 0
	}
	raw, err := json.Marshal(rows)
	if err != nil { // a row holds nothing that cannot be marshalled
		panic(fmt.Sprintf("marshal rows: %v", err))
	}
	h := fnv.New64a()
	_, _ = h.Write(raw)
	return h.Sum64()
}

// Snapshot is what the group publishes.
func (l *Ledger) Snapshot(now time.Time) Snapshot { return l.snapshot(-1, now) }

// Since is what changed after the caller's position; the whole when that is of another epoch or too long ago.
func (l *Ledger) Since(seen Position, now time.Time) Change {
	c := Change{Since: seen, Whole: seen.Epoch != l.Epoch || seen.Revision < l.Forgotten}
	if c.Whole {
		c.Snapshot = l.Snapshot(now)
		return c
	}
	c.Snapshot, c.Sum = l.snapshot(seen.Revision, now), sum(l.Snapshot(now).Instances)
	for _, g := range l.Gone {
		if g.Revision > seen.Revision {
			c.Gone = append(c.Gone, g.Name)
		}
	}
	for _, e := range l.Entries {
		if e.Phase == Released && e.Revision > seen.Revision {
			c.Gone = append(c.Gone, e.Name)
		}
	}
	return c
}

func (l *Ledger) snapshot(after int64, now time.Time) Snapshot {
	s := Snapshot{
		Group: l.Group, Epoch: l.Epoch, Revision: l.Revision, Target: l.Target(), Paused: l.Paused, Spec: l.Spec,
		Booked: l.NextSeq, Standby: slices.Clone(l.Standby), Condition: l.Condition, Notice: l.Notice,
		Cost: l.cost(), At: now,
	}
	if l.Spec != nil {
		s.Min, s.Max, s.SpecHash = l.Spec.Min, l.Spec.Max, l.Spec.Hash()
	}
	for _, e := range l.Entries {
		if e.Phase == Released || e.Revision <= after {
			continue
		}
		row := e.Row()
		if e.unnamed() {
			row.Phase = Discovering
		}
		s.Instances = append(s.Instances, row)
	}
	return s
}

// Names of what keeps a group from growing, or from being as it is configured.
const (
	BlockPaused           = "Paused"           // an operator paused the group
	BlockAtMax            = "AtMax"            // its target size is its max
	BlockSpendingLimit    = "SpendingLimit"    // a node would cost more than the group may spend
	BlockChangeNotInForce = "ChangeNotInForce" // its configured shape, labels or taints are not those of its nodes
	BlockRetired          = "Retired"          // it is not configured any more, and only shrinks
	BlockBuildFails       = "BuildFails"       // see Snapshot.Condition
)

// Conditions are all that people are to know of the group: why it starts no instance that costs more an hour, and what
// is wrong with it or its config.
func (s Snapshot) Conditions(more money.Money, now time.Time) (all []Notice) {
	for _, n := range []Notice{s.Blocked(more, now), s.Notice, {BlockBuildFails, s.Condition}} {
		if n.Message != "" {
			all = append(all, n)
		}
	}
	return all
}

// Blocked is why the group itself starts no instance that costs more an hour; the zero value when it may. It knows
// nothing of offers and of limits of all groups.
func (s Snapshot) Blocked(more money.Money, now time.Time) Notice {
	switch {
	case s.Paused:
		return Notice{BlockPaused, "it is paused: liqo-autoscaler resume group " + s.Group}
	case s.Spec == nil:
		return Notice{}
	case s.Target >= s.Max:
		return Notice{BlockAtMax, fmt.Sprintf("its target size %d is its max", s.Target)}
	}
	if why := s.Spec.Spending.Refuses(s.Cost, more, now); why != "" {
		return Notice{BlockSpendingLimit, why}
	}
	return Notice{}
}
