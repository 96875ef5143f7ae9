package fleet

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
)

// Operation identifies one call of a client. If a client repeats an operation with the same id, it receives the
// outcome of the first one. The group refuses an operation after GiveUpAt, so that the operation has no effect after
// its caller stopped waiting. Configure does not check the id or GiveUpAt, because a repeated spec changes nothing.
type Operation struct {
	ID       string    `json:"id"`
	GiveUpAt time.Time `json:"giveUpAt"`
}

// These are the times of an operation. A client that has lost an answer waits until TaskTimeout after GiveUpAt. From
// then on, an operation that has not run will never run.
const (
	// An operation expires GiveUpBefore before the deadline of its caller, so that the answer can still reach the
	// caller.
	GiveUpBefore = 500 * time.Millisecond
	// TaskTimeout is the workflow task timeout of every entity. So a task that started before GiveUpAt has ended at
	// the latest TaskTimeout after GiveUpAt. If the worker of a task dies, another worker runs the task and checks the
	// operation again.
	TaskTimeout = 5 * time.Second
)

// Request contains the input of an operation: the fields of every operation, and the fields of single operations.
type Request struct {
	Operation Operation `json:"operation"`
	// Seen is the newest position that the caller knows. A group behind this position has lost a part of its history.
	Seen Position `json:"seen,omitzero"`
	// Delta is the number of instances to add or to remove. It is positive in both cases.
	Delta int `json:"delta,omitempty"`
	// PriceCap bounds the hourly price of each new instance. More expensive offers are not used. Until the instance's
	// node exists, this amount counts towards spending.hourly.hard. 0 means that prices are unknown or unbounded.
	PriceCap float64 `json:"priceCap,omitempty"`
	// Names lists the instances to release.
	Names []string `json:"names,omitempty"`
	// Calls lists releases that are booked together. The request itself is then not an operation.
	Calls []Call `json:"calls,omitempty"`
	// Spec is the spec to apply, and Notice the server's message about it.
	Spec   *GroupSpec  `json:"spec,omitempty"`
	Notice GroupNotice `json:"notice,omitzero"`
	// Paused reports that the group must not start instances.
	Paused bool `json:"paused,omitempty"`
	// Cluster is the UID of the caller's consumer cluster, or "" if the caller does not know it. A worker of another
	// cluster refuses the request.
	Cluster string `json:"cluster,omitempty"`
	// Trace is the caller's span, a W3C traceparent. The work on the booked or released instances belongs to the same
	// trace. It affects no decision.
	Trace string `json:"trace,omitempty"`
}

// Call is one of several releases that are booked together. It is an operation of its own.
type Call struct {
	Operation Operation `json:"operation"`
	Names     []string  `json:"names"`
	Trace     string    `json:"trace,omitempty"`
}

// request returns the call as a request of its own.
func (r Request) request(c Call) Request {
	return Request{Operation: c.Operation, Seen: r.Seen, Names: c.Names, Trace: c.Trace}
}

// CheckCluster returns a refusal if the request comes from a cluster other than the worker's cluster. The UID "" is
// unknown, and is not checked.
func (r Request) CheckCluster(own string) error {
	if r.Cluster == "" || own == "" || r.Cluster == own {
		return nil
	}
	return Refuse(RefusedOtherCluster, fmt.Sprintf("this hub belongs to the cluster with UID %s, and the caller is in "+
		"the cluster with UID %s: choose another hub for this cluster", own, r.Cluster))
}

// Verb names an operation. It is the name of the update on the wire.
type Verb string

// These are the operations.
const (
	Configure Verb = "configure" // apply a spec
	Grow      Verb = "grow"      // book Delta instances, Pending
	Shrink    Verb = "shrink"    // release min(Delta, counted and not registered), youngest first (I4)
	Release   Verb = "release"   // release the named instances; an instance that is already released is success
	Pause     Verb = "pause"     // start no instances and fail instances without a grant, or resume
)

// Verbs lists every operation.
var Verbs = []Verb{Configure, Grow, Shrink, Release, Pause}

// bookings maps each operation that runs once per id to its check and its booking.
var bookings = map[Verb]struct {
	check func(*Ledger, Request, time.Time) error
	book  func(*Ledger, Request, time.Time)
}{
	Grow:    {(*Ledger).checkGrow, (*Ledger).grow},
	Shrink:  {(*Ledger).checkShrink, (*Ledger).shrink},
	Release: {(*Ledger).checkRelease, (*Ledger).release},
	Pause:   {(*Ledger).checkPause, (*Ledger).pause},
}

// Check returns Operate's result without booking anything. known reports that the operation has run before.
func (l *Ledger) Check(verb Verb, r Request, now time.Time) (known bool, err error) {
	if l.Behind(r.Seen) {
		return false, Refuse(RefusedNotInitialised, "group "+l.Group+" is behind what its server has seen and is being "+
			"rebuilt from the objects that exist")
	}
	if l.Recovering {
		return false, Refuse(RefusedNotInitialised, "group "+l.Group+" is being rebuilt from the objects that exist")
	}
	if verb == Configure {
		return false, l.checkConfigure(r.Spec)
	}
	if known, err = l.admit(r.Operation, now); err != nil || known {
		return known, err
	}
	return false, bookings[verb].check(l, r, now)
}

// Validate returns the refusal of a request before it is booked. It accepts a request that shows that the ledger's
// history was reverted: Operate then resets the ledger. For a request with Calls, Validate returns a refusal only
// while the ledger cannot book any operation. OperateEach later checks each call.
func (l *Ledger) Validate(verb Verb, r Request, now time.Time) error {
	if l.Behind(r.Seen) && !l.Recovering {
		return nil
	}
	if len(r.Calls) == 0 {
		_, err := l.Check(verb, r, now)
		return err
	}
	if _, err := l.Check(verb, r.request(r.Calls[0]), now); IsRefused(err, RefusedNotInitialised) {
		return err
	}
	return nil
}

// Operate books an operation, but never twice. Its errors are *Refusal: Invalid, MaxSize, Spending, Precondition,
// Expired, NotInitialised. A refused operation changes nothing, except that a ledger whose history was reverted is
// reset (design rule: existing objects win).
func (l *Ledger) Operate(verb Verb, r Request, now time.Time) error {
	known, err := l.Check(verb, r, now)
	if l.Behind(r.Seen) && !l.Recovering {
		l.revert(r.Seen, now)
	}
	if err != nil || known {
		return err
	}
	if verb == Configure {
		l.configure(*r.Spec, r.Notice)
		return nil
	}
	released := l.Releases
	bookings[verb].book(l, r, now)
	l.Ops.Add(r.Operation.ID)
	if l.Releases > released {
		l.savePosition()
	}
	return nil
}

// OperateEach books the operation of a request, or each call of the request as an operation of its own. refused maps
// the index of each refused call to its refusal. The error is from Operate: the refusal of the one operation, or the
// refusal of all calls while the ledger is being rebuilt.
func (l *Ledger) OperateEach(verb Verb, r Request, now time.Time) (refused map[int]Refusal, err error) {
	if len(r.Calls) == 0 {
		return nil, l.Operate(verb, r, now)
	}
	for n, c := range r.Calls {
		err := l.Operate(verb, r.request(c), now)
		var refusal *Refusal
		switch {
		case err == nil:
		case IsRefused(err, RefusedNotInitialised) || !errors.As(err, &refusal):
			return nil, err
		case refused == nil:
			refused = map[int]Refusal{n: *refusal}
		default:
			refused[n] = *refusal
		}
	}
	return refused, nil
}

// Behind reports whether a caller has seen a newer position of this group than the ledger has. If so, the group's
// history was reverted.
func (l *Ledger) Behind(seen Position) bool {
	return l.Position().Behind(seen)
}

// Position returns the present position of the group's history.
func (l *Ledger) Position() Position {
	return Position{Epoch: l.Epoch, Revision: l.Revision, Booked: l.NextSeq, Released: l.Releases}
}

// admit reports whether the operation has run before. It returns a *Refusal when the operation's caller has given up,
// or when the group has no spec yet.
func (l *Ledger) admit(op Operation, now time.Time) (known bool, err error) {
	if op.ID == "" {
		return false, Refuse(RefusedInvalid, "operation without id")
	}
	if l.Ops.Has(op.ID) {
		return true, nil
	}
	if now.After(op.GiveUpAt) {
		return false, Refuse(RefusedExpired, fmt.Sprintf("operation %s came %s after its caller gave up",
			op.ID, now.Sub(op.GiveUpAt).Round(time.Millisecond)))
	}
	if l.Spec == nil {
		return false, Refuse(RefusedNotInitialised,
			"the group has no configuration yet; it comes with the server's next Refresh")
	}
	return false, nil
}

func (l *Ledger) checkConfigure(spec *GroupSpec) error {
	if spec == nil {
		spec = &GroupSpec{}
	}
	if spec.ID != l.Group {
		return Refuse(RefusedInvalid, fmt.Sprintf("this is group %s, not %q; use a new group", l.Group, spec.ID))
	}
	return nil
}

func (l *Ledger) configure(spec GroupSpec, notice GroupNotice) {
	spec.Budgets = spec.Budgets.WithDefaults()
	if l.Spec == nil || l.Spec.Hash() != spec.Hash() {
		l.Spec = &spec
		l.Revision++
	}
	if l.Notice != notice {
		l.Notice = notice
		l.Revision++
	}
}

func (l *Ledger) checkGrow(r Request, now time.Time) error {
	delta, target := r.Delta, l.Target()
	switch {
	case delta < 1:
		return Refuse(RefusedInvalid, fmt.Sprintf("delta must be at least 1, not %d", delta))
	case l.Paused:
		return Refuse(RefusedMax, fmt.Sprintf("group %s is paused; resume it to scale out", l.Group))
	case delta > l.Spec.Max || target+delta > l.Spec.Max: // the first condition guards the sum against overflow
		return Refuse(RefusedMax, fmt.Sprintf("group %s: target size %d + %d is over max %d", l.Group, target, delta,
			l.Spec.Max))
	}
	if why := l.Spec.Spending.Refuses(l.cost().Balance(now), money.Of(r.PriceCap*float64(delta))); why != "" {
		return Refuse(RefusedSpending, fmt.Sprintf("group %s: %s", l.Group, why))
	}
	return nil
}

func (l *Ledger) grow(r Request, now time.Time) {
	booked := l.booking(now)
	for range r.Delta {
		l.NextSeq++
		i := NewInstance(InstanceName(l.Group, booked, l.NextSeq), &l.Spec.InstanceSpec, now)
		i.Trace, i.PriceCap = r.Trace, max(r.PriceCap, 0)
		l.add(i).New = true
	}
}

// booking returns the booking time for an instance name that is assigned now. It is later than the epoch, because the
// group's previous workflow may have assigned names in the second in which the epoch began. It is never earlier than
// the booking time of another name, because the clocks of Temporal's servers differ.
func (l *Ledger) booking(now time.Time) string {
	if at := NewEpoch(now); EpochBefore(l.newest(), at) {
		l.LastBooked = at
	} else if l.LastBooked == "" {
		l.LastBooked = nextEpoch(l.Epoch)
	}
	return l.LastBooked
}

func (l *Ledger) checkShrink(r Request, _ time.Time) error {
	if r.Delta < 1 {
		return Refuse(RefusedInvalid, fmt.Sprintf("delta must be negative, not %d", -r.Delta))
	}
	if !slices.ContainsFunc(l.Entries, (*Entry).cancellable) {
		return Refuse(RefusedPrecondition,
			fmt.Sprintf("group %s: no instance that is still to come can be cancelled; delete nodes by name", l.Group))
	}
	return nil
}

func (l *Ledger) shrink(r Request, _ time.Time) {
	for _, e := range slices.Backward(l.Entries) {
		if r.Delta > 0 && e.cancellable() {
			l.releaseEntry(e, r.Trace)
			r.Delta--
		}
	}
}

func (e *Entry) cancellable() bool { return e.Counts() && !e.Registered && e.Phase != Ready }

func (l *Ledger) releaseEntry(e *Entry, trace string) {
	if !e.Leaving {
		l.Releases++
	}
	if !e.Leaving || e.Stuck != "" {
		e.MarkDeleted()
		e.Trace = trace
		l.changed(e)
	}
}

// savePosition adds a command that saves the group's position outside of Temporal. If a backup of Temporal is restored
// that lacks the release of an instance, the saved position shows it, and the instance's id is not used again (I2). The
// group has at most one such command, because each saves the position that the group has at that time.
func (l *Ledger) savePosition() {
	l.Commands.Drop(func(c Command) bool { return c.Kind == CommandSave })
	l.Commands.Add(Command{Kind: CommandSave})
}

func (l *Ledger) checkRelease(r Request, _ time.Time) error {
	for _, n := range r.Names {
		if !isInstanceOf(n, l.Group) {
			return Refuse(RefusedInvalid, fmt.Sprintf("instance %q is not of group %s", n, l.Group))
		}
		if e := l.Find(n); e != nil && e.Kept && !e.Leaving && e.Phase == Ready {
			return Refuse(RefusedPrecondition, fmt.Sprintf("instance %s keeps the volumes on provider %s: with its last node "+
				"Liqo deletes them there; delete their claims first, or set volumes: delete for group %s", n, e.Provider(),
				l.Group))
		}
	}
	return nil
}

func (l *Ledger) release(r Request, _ time.Time) {
	for _, name := range r.Names {
		if e := l.Find(name); e != nil {
			l.releaseEntry(e, r.Trace)
		}
	}
}
