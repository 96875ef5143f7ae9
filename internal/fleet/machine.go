package fleet

// Phase names a stage in the life of an instance.
type Phase string

// These are the phases of an instance, in the order of its life. In Unpeering, the driver returns the attempt's node
// and slice to the provider and releases the hold. The workflow unpeering/<provider> removes the peering itself after
// the last hold.
const (
	Pending     Phase = "Pending"
	Discovering Phase = "Discovering"
	Selecting   Phase = "Selecting"
	Peering     Phase = "Peering"
	Joining     Phase = "Joining"
	Ready       Phase = "Ready"
	Draining    Phase = "Draining"
	Unpeering   Phase = "Unpeering"
	Failed      Phase = "Failed"
	Released    Phase = "Released"
)

// Step names the work that moves an instance to its next phase. Each step is an activity of the same name, except
// Acquire, which waits for the provider's answer.
type Step string

// These are the steps. Phases that only wait for an event have the empty step.
const (
	StepNone     Step = ""
	StepDiscover Step = "Discover"
	StepSelect   Step = "Select"
	StepAcquire  Step = "Acquire"
	StepJoin     Step = "Join"
	StepDrain    Step = "Drain"
	StepReturn   Step = "Return"
)

// State names the state of an instance in our answers to CA.
type State string

// These are the states of externalgrpc's InstanceStatus.
const (
	StateCreating State = "creating"
	StateRunning  State = "running"
	StateDeleting State = "deleting"
)

// EventKind names an event of an instance.
type EventKind string

// These are the events of an instance.
const (
	Done       EventKind = "done"       // the step has finished its work
	Again      EventKind = "again"      // the provider is full or did not answer: choose again, without blame
	Refused    EventKind = "refused"    // the provider refused
	GaveUp     EventKind = "gaveUp"     // the step used up its budget
	Cancelled  EventKind = "cancelled"  // an operator cancelled the driver
	Deadline   EventKind = "deadline"   // budgets.total expired without a provider
	Registered EventKind = "registered" // fact: the Node carries the instance id and is Ready
	NotReady   EventKind = "notReady"   // fact: the Node is not Ready
	Lost       EventKind = "lost"       // fact: the slice, VirtualNode or Node is gone
	Deleted    EventKind = "deleted"    // CA deleted the instance
	Expired    EventKind = "expired"    // CA did not delete a failed instance in time
	Paused     EventKind = "paused"     // an operator paused the group; instances with a granted hold continue
)

// Stopped ends a driver that its group no longer needs. It is not an event of the table.
const Stopped EventKind = "stopped"

// EventKinds lists every event, in the order of the tables.
var EventKinds = []EventKind{
	Done, Again, Refused, GaveUp, Cancelled, Deadline, Registered, NotReady, Lost, Deleted, Expired, Paused,
}

// Move describes the effect of an event in a phase.
type Move struct {
	// To is the next phase; empty means that the phase does not change.
	To Phase
	// Blame adds the attempt's provider to the instance's refused providers (failover.go).
	Blame bool
	// Undo starts undo/<name>-<attempt> for the attempt.
	Undo bool
	// Force reports that the following steps do not wait for pods.
	Force bool
	// Stuck marks the instance as waiting for an operator or the next DeleteNodes.
	Stuck bool
	// Ignored reports that the row has no move for the event. This is not an error.
	Ignored bool
}

// Row describes one phase: its step, the state for CA, and the moves of the events that have an effect here.
type Row struct {
	Phase  Phase
	Step   Step
	Counts bool
	State  State // empty: the instance is not listed
	Moves  map[EventKind]Move
}

var (
	stay   = Move{}
	undone = Move{To: Failed, Undo: true}
)

func to(p Phase) Move { return Move{To: p} }

// Machine is the table of an instance's life. The interpreter (Instance.Apply), the drivers, the diagram in docs and
// the tests all read it. Two kinds of transitions are not in the table. The existing objects determine the phase after
// a recovery, after the loss of a driver, and when a forgotten node is found (results.go, compare.go). The group
// copies the phase from a driver's view (views.go).
//
// Facts (registered, notReady, lost) and CA's deletion of an instance (deleted) may arrive in any phase. While a driver
// runs, the group forwards facts to the driver and does not apply them (step.go). Events of steps appear only in the
// phase whose step they conclude. A phase ignores every event without a move in its row.
var Machine = []Row{
	{Pending, StepNone, true, StateCreating, map[EventKind]Move{
		Done: to(Discovering), Cancelled: to(Failed), Deadline: to(Failed), Deleted: to(Released), Paused: to(Failed),
	}},
	{Discovering, StepDiscover, true, StateCreating, map[EventKind]Move{
		Done: to(Selecting), Refused: to(Failed), GaveUp: to(Failed), Cancelled: to(Failed), Deadline: to(Failed),
		Deleted: to(Released), Paused: to(Failed),
	}},
	// Again means that no offer fits now, and one could fit later. The driver searches again, within
	// budgets.selectWait.
	{Selecting, StepSelect, true, StateCreating, map[EventKind]Move{
		Done: to(Peering), Again: to(Discovering), Refused: to(Failed), GaveUp: to(Failed), Cancelled: to(Failed),
		Deadline: to(Failed), Deleted: to(Released), Paused: to(Failed),
	}},
	// This phase ends with the provider's answer, or after too many requests without an answer (driver/peering.go).
	{Peering, StepAcquire, true, StateCreating, map[EventKind]Move{
		Done: to(Joining), Again: to(Discovering), Refused: declined, Cancelled: to(Failed),
		Deleted: to(Unpeering), Paused: to(Failed),
	}},
	{Joining, StepJoin, true, StateCreating, map[EventKind]Move{
		Done: to(Ready), Again: {To: Discovering, Undo: true}, Refused: failover, GaveUp: failover, Cancelled: undone,
		Registered: stay, Deleted: to(Draining),
	}},
	{Ready, StepNone, true, StateRunning, map[EventKind]Move{
		Registered: stay, NotReady: stay, Lost: {To: Draining, Force: true}, Deleted: to(Draining),
	}},
	{Draining, StepDrain, false, StateDeleting, map[EventKind]Move{
		Done: to(Unpeering), Refused: {To: Unpeering, Force: true}, GaveUp: {To: Unpeering, Force: true},
		Cancelled: {Stuck: true}, Lost: {Force: true}, Deleted: stay,
	}},
	{Unpeering, StepReturn, false, StateDeleting, map[EventKind]Move{
		Done: to(Released), Cancelled: {Stuck: true}, Deleted: stay,
	}},
	{Failed, StepNone, true, StateCreating, map[EventKind]Move{Deleted: to(Released), Expired: to(Released)}},
	{Released, StepNone, false, "", nil},
}

// Row returns the phase's row of Machine. It returns a Row without moves for a phase that this version does not know.
func (p Phase) Row() Row {
	for _, r := range Machine {
		if r.Phase == p {
			return r
		}
	}
	return Row{Phase: p}
}

// Growing reports whether scale-out/<name> drives an instance in this phase.
func (p Phase) Growing() bool {
	return p == Discovering || p == Selecting || p == Peering || p == Joining
}

// Shrinking reports whether scale-in/<name> drives an instance in this phase.
func (p Phase) Shrinking() bool { return p == Draining || p == Unpeering }
