package fleet

// Phase is where an instance is.
type Phase string

// The phases of an instance, in the order of its life. Unpeering gives the attempt's node, slice and hold back; the
// peering itself is removed by unpeering/<provider> after the last hold.
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

// Step is what tries to move an instance on: an activity of the same name, but for Acquire, which waits for the
// provider's answer.
type Step string

// The steps. The empty one belongs to phases that wait for an event only.
const (
	StepNone     Step = ""
	StepDiscover Step = "Discover"
	StepSelect   Step = "Select"
	StepAcquire  Step = "Acquire"
	StepJoin     Step = "Join"
	StepDrain    Step = "Drain"
	StepReturn   Step = "Return"
)

// State is an instance as CA sees it.
type State string

// The states of externalgrpc's InstanceStatus.
const (
	StateCreating State = "creating"
	StateRunning  State = "running"
	StateDeleting State = "deleting"
)

// EventKind is what just happened to an instance.
type EventKind string

// The events of an instance.
const (
	Done       EventKind = "done"       // the step reached its end
	Again      EventKind = "again"      // nobody is to blame: the provider is full or did not answer; look again
	Refused    EventKind = "refused"    // the provider said no
	GaveUp     EventKind = "gaveUp"     // the step used up its budget
	Cancelled  EventKind = "cancelled"  // an operator cancelled the driver
	Deadline   EventKind = "deadline"   // budgets.total is over, and there is no provider
	Registered EventKind = "registered" // fact: the Node carries the instance id and is Ready
	NotReady   EventKind = "notReady"   // fact: the Node is not Ready
	Lost       EventKind = "lost"       // fact: slice, VirtualNode or Node are gone
	Deleted    EventKind = "deleted"    // CA gave the instance back
	Expired    EventKind = "expired"    // CA did not delete a failed instance in time
	Paused     EventKind = "paused"     // an operator paused the group; what has a grant goes on
)

// Stopped ends a driver whose group no longer wants it; it is no event of the table.
const Stopped EventKind = "stopped"

// EventKinds lists every event, in the order of the tables.
var EventKinds = []EventKind{
	Done, Again, Refused, GaveUp, Cancelled, Deadline, Registered, NotReady, Lost, Deleted, Expired, Paused,
}

// Move is the effect of an event in a phase.
type Move struct {
	// To is the next phase; empty means the instance stays where it is.
	To Phase
	// Blame adds the attempt's provider to the refused ones (failover.go).
	Blame bool
	// Undo hands the attempt to undo/<name>-<attempt>.
	Undo bool
	// Force makes what follows not wait for pods.
	Force bool
	// Stuck marks the instance as waiting for a person or the next DeleteNodes.
	Stuck bool
	// Ignored says that the row has no move for the event, which means nothing here; it is not an error.
	Ignored bool
}

// Row is one phase: its step, what CA sees, and the moves of the events that mean something here.
type Row struct {
	Phase  Phase
	Step   Step
	Counts bool
	State  State // empty: not listed
	Moves  map[EventKind]Move
}

var (
	stay   = Move{}
	undone = Move{To: Failed, Undo: true}
)

func to(p Phase) Move { return Move{To: p} }

// Machine is the table of an instance's life. It is data: the interpreter (Instance.Apply), the drivers, the diagram in
// docs and the tests all read it. What a recovery or a driver's loss makes of an instance is decided by what exists, in
// results.go, and is not in the table; the group copies the phase of a driver's view (views.go).
//
// Facts (registered, notReady, lost) and CA's wish to have an instance back (deleted) may come in any phase; while a
// driver runs the group leaves facts to it (step.go). Step events are named only in the phase whose step they
// conclude. An event that a row does not name is ignored there.
var Machine = []Row{
	{Pending, StepNone, true, StateCreating, map[EventKind]Move{
		Done: to(Discovering), Cancelled: to(Failed), Deadline: to(Failed), Deleted: to(Released), Paused: to(Failed),
	}},
	{Discovering, StepDiscover, true, StateCreating, map[EventKind]Move{
		Done: to(Selecting), Refused: to(Failed), GaveUp: to(Failed), Cancelled: to(Failed), Deadline: to(Failed),
		Deleted: to(Released), Paused: to(Failed),
	}},
	// Again means that nothing fits now and something could: look again, within budgets.selectWait.
	{Selecting, StepSelect, true, StateCreating, map[EventKind]Move{
		Done: to(Peering), Again: to(Discovering), Refused: to(Failed), GaveUp: to(Failed), Cancelled: to(Failed),
		Deadline: to(Failed), Deleted: to(Released), Paused: to(Failed),
	}},
	// The provider's answer moves it on, or that there is none: driver/peering.go.
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

// Row returns the phase's row of Machine; the zero Row for a phase this version does not know.
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
