package fleet

// EventKind is what just happened to an instance.
type EventKind string

// The events of an instance.
const (
	Done       EventKind = "done"       // the step reached its end
	Refused    EventKind = "refused"    // the step ended with a no
	GaveUp     EventKind = "gaveUp"     // the step used up its budget or met an error that no retry mends
	Cancelled  EventKind = "cancelled"  // an operator cancelled the driving workflow
	Deadline   EventKind = "deadline"   // the instance's whole budget is used up
	Registered EventKind = "registered" // fact: the Node carries the instance id and is Ready
	NotReady   EventKind = "notReady"   // fact: the Node is not Ready
	Lost       EventKind = "lost"       // fact: slice or virtual node are gone
	Leave      EventKind = "released"   // CA asked it back, and no workflow drives it any longer
	Expired    EventKind = "expired"    // CA did not delete a failed instance in time
)

// EventKinds lists every event, in the order of the tables.
var EventKinds = []EventKind{Done, Refused, GaveUp, Cancelled, Deadline, Registered, NotReady, Lost, Leave, Expired}

// Move is the effect of an event in a phase.
type Move struct {
	// To is the next phase; empty means the instance stays where it is.
	To Phase
	// Lap hands the attempt to undo/<name>-<attempt>, refuses its provider and starts the next lap: Discovering, for
	// capacity Selecting, or Failed when no lap is left. To is then empty.
	Lap bool
	// Undo hands the attempt to undo/<name>-<attempt>, and To says where the instance goes.
	Undo bool
	// Force makes what follows not wait for pods.
	Force bool
	// Stuck marks the instance as waiting for a person or the next DeleteNodes.
	Stuck bool
	// Ignored says that the event means nothing here; it is not an error.
	Ignored bool
}

// Row is one phase: its step, what CA sees, and the move for every event.
type Row struct {
	Phase  Phase
	Step   Step
	Counts bool
	State  State // empty: not listed
	Moves  map[EventKind]Move
}

var (
	stay    = Move{}
	ignored = Move{Ignored: true}
	nextLap = Move{Lap: true}
	undone  = Move{To: Failed, Undo: true}
)

func to(p Phase) Move { return Move{To: p} }

// Machine is the table of an instance's life. It is data: the interpreter (Instance.Apply), the workflows, the diagram in
// docs and the tests all read it, and nothing else moves an instance.
//
// Facts (registered, notReady, lost) and CA's wish to have an instance back (released) reach an instance in any phase;
// step events only in the phase whose step they conclude.
var Machine = []Row{
	{Pending, StepNone, true, StateCreating, map[EventKind]Move{
		Done: to(Discovering), Refused: ignored, GaveUp: ignored, Cancelled: to(Failed), Deadline: to(Failed),
		Registered: ignored, NotReady: ignored, Lost: ignored, Leave: to(Released), Expired: ignored,
	}},
	{Discovering, StepDiscover, true, StateCreating, map[EventKind]Move{
		Done: to(Selecting), Refused: to(Failed), GaveUp: to(Failed), Cancelled: to(Failed), Deadline: to(Failed),
		Registered: ignored, NotReady: ignored, Lost: ignored, Leave: to(Released), Expired: ignored,
	}},
	// Refused here means that nothing fits: once, after refusals for capacity, that leads to a fresh Discover.
	{Selecting, StepSelect, true, StateCreating, map[EventKind]Move{
		Done: to(Peering), Refused: to(Failed), GaveUp: to(Failed), Cancelled: to(Failed), Deadline: to(Failed),
		Registered: ignored, NotReady: ignored, Lost: ignored, Leave: to(Released), Expired: ignored,
	}},
	{Peering, StepPeer, true, StateCreating, map[EventKind]Move{
		Done: to(Joining), Refused: nextLap, GaveUp: nextLap, Cancelled: undone, Deadline: undone,
		Registered: ignored, NotReady: ignored, Lost: ignored, Leave: to(Unpeering), Expired: ignored,
	}},
	{Joining, StepWaitForVirtualNode, true, StateCreating, map[EventKind]Move{
		Done: to(Ready), Refused: nextLap, GaveUp: nextLap, Cancelled: undone, Deadline: undone,
		Registered: stay, NotReady: ignored, Lost: ignored, Leave: to(Draining), Expired: ignored,
	}},
	{Ready, StepNone, true, StateRunning, map[EventKind]Move{
		Done: ignored, Refused: ignored, GaveUp: ignored, Cancelled: ignored, Deadline: ignored,
		Registered: stay, NotReady: stay, Lost: {To: Draining, Force: true}, Leave: to(Draining), Expired: ignored,
	}},
	{Draining, StepDrain, false, StateDeleting, map[EventKind]Move{
		Done: to(Unpeering), Refused: {To: Unpeering, Force: true}, GaveUp: {To: Unpeering, Force: true},
		Cancelled: {Stuck: true}, Deadline: ignored,
		Registered: ignored, NotReady: ignored, Lost: {Force: true}, Leave: stay, Expired: ignored,
	}},
	{Unpeering, StepUnpeer, false, StateDeleting, map[EventKind]Move{
		Done: to(Released), Refused: ignored, GaveUp: ignored, Cancelled: {Stuck: true}, Deadline: ignored,
		Registered: ignored, NotReady: ignored, Lost: ignored, Leave: stay, Expired: ignored,
	}},
	{Failed, StepNone, true, StateCreating, map[EventKind]Move{
		Done: ignored, Refused: ignored, GaveUp: ignored, Cancelled: ignored, Deadline: ignored,
		Registered: ignored, NotReady: ignored, Lost: ignored, Leave: to(Released), Expired: to(Released),
	}},
	{Released, StepNone, false, "", map[EventKind]Move{
		Done: ignored, Refused: ignored, GaveUp: ignored, Cancelled: ignored, Deadline: ignored,
		Registered: ignored, NotReady: ignored, Lost: ignored, Leave: ignored, Expired: ignored,
	}},
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

// Growing tells whether a scale-out workflow drives an instance in this phase.
func (p Phase) Growing() bool {
	return p == Discovering || p == Selecting || p == Peering || p == Joining
}

// Shrinking tells whether a scale-in workflow drives an instance in this phase.
func (p Phase) Shrinking() bool { return p == Draining || p == Unpeering }
