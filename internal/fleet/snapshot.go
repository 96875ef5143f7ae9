package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Snapshot is the state that a NodeGroup publishes in its memo, at most once per workflow task. The gRPC server builds
// its answers only from this snapshot. A snapshot replaces another snapshot only if Newer returns true.
type Snapshot struct {
	Group string `json:"group"`
	Epoch string `json:"epoch"`
	// Revision increases with each change within an epoch.
	Revision int64 `json:"revision"`
	// Term is the term of the observer whose round the group has processed last.
	Term int64 `json:"term,omitempty"`
	// Target is the number of instances that count (I1).
	Target int `json:"target"`
	Min    int `json:"min"`
	Max    int `json:"max"`
	// SpecHash is the hash of the present GroupSpec, see Hash.
	SpecHash string `json:"specHash"`
	// Spec is the present spec; nil until the group is configured.
	Spec *GroupSpec `json:"spec,omitempty"`
	// Booked is the number of instances that were ever booked in this epoch.
	Booked int `json:"booked,omitempty"`
	// Released is the number of instances that the group's callers have released in this epoch.
	Released int  `json:"released,omitempty"`
	Paused   bool `json:"paused,omitempty"`
	// Recovering reports that the group is listing the existing objects. It refuses operations during this time.
	Recovering bool           `json:"recovering,omitempty"`
	Instances  []InstanceView `json:"instances,omitempty"` // in the order of their booking
	// Standby lists the peerings that the group keeps ready.
	Standby []Standby `json:"standby,omitempty"`
	// Condition describes the fault of the group as a whole; empty without one.
	Condition string `json:"condition,omitempty"`
	// Notice is the server's message about the configured spec.
	Notice GroupNotice `json:"notice,omitzero"`
	// Cost is the cost of the group's nodes.
	Cost money.Cost `json:"cost,omitzero"`
	// At is the workflow's time at which the snapshot was taken.
	At time.Time `json:"at"`
}

// InstanceView describes one instance in a Snapshot. Released instances are not listed.
type InstanceView struct {
	Name   string `json:"name"`
	Phase  Phase  `json:"phase"`
	State  State  `json:"state"`
	Counts bool   `json:"counts,omitempty"`
	// Failure is the reason for which the instance failed or was lost.
	Failure *Failure `json:"failure,omitempty"`
	Attempt int      `json:"attempt,omitempty"`
	// Provider names the current attempt's provider; empty before the first selection.
	Provider string    `json:"provider,omitempty"`
	Since    time.Time `json:"since"`
	NotReady bool      `json:"notReady,omitempty"`
	// NotReadySince is the time at which the group learned that the Node is not Ready.
	NotReadySince time.Time `json:"notReadySince,omitzero"`
	Stuck         string    `json:"stuck,omitempty"`
	// Registered reports that the Node carries the instance id as providerID.
	Registered bool `json:"registered,omitempty"`
	// Kept reports that the instance's Node is kept because volumes are on its provider.
	Kept bool `json:"kept,omitempty"`
	// Price is the instance's hourly price in millionths of the group's currency, while the provider has its slice; 0
	// when the offer had no price.
	Price money.Money `json:"price,omitempty"`
}

// Row returns the instance's entry in the group's snapshot.
func (i *Instance) Row() InstanceView {
	v := InstanceView{
		Name: i.Name, Phase: i.Phase, State: i.Phase.Row().State, Counts: i.Counts(), Attempt: i.Attempt, Since: i.Since,
		NotReady: i.NotReady, NotReadySince: i.NotReadySince, Stuck: i.Stuck, Registered: i.Registered,
		Provider: i.Provider(),
	}
	if i.Offer != nil && (i.Phase == Ready || i.Phase.Shrinking()) {
		v.Price = money.Of(i.Offer.Hourly)
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

// ID returns the id of the instance in CA.
func (v InstanceView) ID(group string) string { return InstanceID(group, v.Name) }

// Peered returns the number of standbys whose hold has the given state.
func (s Snapshot) Peered(state HoldState) (n int) {
	for _, h := range s.Standby {
		if h.State == state {
			n++
		}
	}
	return n
}

// Position identifies a point in a group's history: an epoch and a revision in it.
type Position struct {
	Epoch    string `json:"epoch,omitempty"`
	Revision int64  `json:"revision,omitempty"`
	// Booked is the number of names that the epoch had assigned. It shows that a history was reverted even if the
	// revision has reached the earlier value again.
	Booked int `json:"booked,omitempty"`
	// Released is the number of instances that the group's callers had released in the epoch. A restored backup that
	// lacks a release shows it even if it has reached the earlier revision again.
	Released int `json:"released,omitempty"`
}

// GroupRecord is the observer's saved record of a group, which outlives the group's history.
type GroupRecord struct {
	// Position is the newest position that a round has read.
	Position
	Paused bool `json:"paused,omitempty"`
}

// Receipt is the result of an operation for its caller: the position of the group after the operation, and the time of
// the group's clock. The snapshot that the group publishes in the same workflow task has this position or a later one.
type Receipt struct {
	Position
	At time.Time `json:"at"`
	// Refused contains the refusals of calls that changed nothing. Its keys are the indexes of the calls in the
	// request. The group has booked all other calls.
	Refused map[int]Refusal `json:"refused,omitempty"`
}

// Position returns the position of the snapshot in the group's history.
func (s Snapshot) Position() Position {
	return Position{Epoch: s.Epoch, Revision: s.Revision, Booked: s.Booked, Released: s.Released}
}

// Newer reports whether s may replace old: s has a later epoch, or a later revision in the same epoch.
func (s Snapshot) Newer(old Snapshot) bool { return old.Position().Before(s.Position()) }

// Before reports whether p is an earlier position than o.
func (p Position) Before(o Position) bool {
	return EpochBefore(p.Epoch, o.Epoch) || p.Epoch == o.Epoch && p.Revision < o.Revision
}

// Behind reports whether p is behind the position that a caller has seen of the same group. If it is, the group's
// history was reverted. After a revert the revision may have caught up; then the number of names that the epoch has
// assigned, or of the instances that it has released, is still smaller.
func (p Position) Behind(seen Position) bool {
	return p.Before(seen) || seen.Epoch == p.Epoch && (seen.Booked > p.Booked || seen.Released > p.Released)
}

// Receipt returns the result of the operation that has just run.
func (l *Ledger) Receipt(now time.Time) Receipt {
	return Receipt{Position: l.Position(), At: now}
}

// Snapshot returns the state that the group publishes.
func (l *Ledger) Snapshot(now time.Time) Snapshot {
	s := Snapshot{
		Group: l.Group, Epoch: l.Epoch, Revision: l.Revision, Term: l.Round.Last.Term, Target: l.Target(), Paused: l.Paused,
		Spec: l.Spec, Booked: l.NextSeq, Released: l.Releases, Standby: slices.Clone(l.Standby), Condition: l.Condition,
		Notice: l.Notice, Cost: l.cost(), Recovering: l.Recovering, At: now,
	}
	if l.Spec != nil {
		s.Min, s.Max, s.SpecHash = l.Spec.Min, l.Spec.Max, l.Spec.Hash()
	}
	for _, e := range l.Entries {
		if e.Phase == Released {
			continue
		}
		row := e.Row()
		row.Kept = e.Kept
		if e.unnamed() {
			row.Phase = Discovering
		}
		s.Instances = append(s.Instances, row)
	}
	return s
}

// These names identify the reasons for which a group cannot grow, or differs from its config.
const (
	BlockPaused           = "Paused"           // an operator paused the group
	BlockAtMax            = "AtMax"            // its target size is its max
	BlockSpendingLimit    = "SpendingLimit"    // a node would cost more than the group may spend
	BlockChangeNotInForce = "ChangeNotInForce" // its config and its nodes differ in shape, labels or taints
	BlockRetired          = "Retired"          // the config no longer contains it, so it only shrinks
	BlockBuildFails       = "BuildFails"       // see Snapshot.Condition
)

// Conditions returns the faults of the group and its config. b is the balance of the group's account. The parameter
// more is the hourly price of a further instance. If the group cannot start this instance, the result includes the
// reason.
func (s Snapshot) Conditions(b money.Balance, more money.Money) (all []GroupNotice) {
	for _, n := range []GroupNotice{s.Blocked(b, more), s.Notice, {BlockBuildFails, s.Condition}} {
		if n.Message != "" {
			all = append(all, n)
		}
	}
	return all
}

// Stopped returns the first condition that prevents the group from growing. It returns the zero value when no condition
// does. A change that was not applied does not prevent growth.
func (s Snapshot) Stopped(b money.Balance, more money.Money) GroupNotice {
	for _, n := range s.Conditions(b, more) {
		if n.Name != BlockChangeNotInForce {
			return n
		}
	}
	return GroupNotice{}
}

// Blocked returns the reason why the group cannot start a further instance. The parameter more is the hourly price of
// this instance, and b is the balance of the group's account. Blocked returns the zero value when the group can start
// the instance. It checks neither the offers nor the limits for all groups.
func (s Snapshot) Blocked(b money.Balance, more money.Money) GroupNotice {
	switch {
	case s.Paused:
		return GroupNotice{BlockPaused, "it is paused: liqo-autoscaler resume group " + s.Group}
	case s.Spec == nil:
		return GroupNotice{}
	case s.Target >= s.Max:
		return GroupNotice{BlockAtMax, fmt.Sprintf("its target size %d is its max", s.Target)}
	}
	if why := s.Spec.Spending.Refuses(b, more); why != "" {
		return GroupNotice{BlockSpendingLimit, why}
	}
	return GroupNotice{}
}
