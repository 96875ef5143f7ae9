package fleet

// PeeringPhase names a stage in the life of a Provider's peering.
type PeeringPhase string

// These are the phases of a peering.
const (
	Absent       PeeringPhase = "Absent"
	Establishing PeeringPhase = "Establishing"
	Compensating PeeringPhase = "Compensating"
	CoolOff      PeeringPhase = "CoolOff"
	Established  PeeringPhase = "Established"
	Repairing    PeeringPhase = "Repairing"
	Lingering    PeeringPhase = "Lingering"
	Removing     PeeringPhase = "Removing"
	Refusing     PeeringPhase = "Refusing" // the provider refuses this cluster until the refusal is lifted or expires
)

// PeeringEvent names an event of a peering.
type PeeringEvent string

// These are the events of a peering.
const (
	PeeringAcquired PeeringEvent = "acquired" // a hold was booked
	PeeringDone     PeeringEvent = "done"     // peering/<id> or unpeering/<id> completed its work
	PeeringFailed   PeeringEvent = "failed"   // the phase's workflow failed, used up its budget or was cancelled
	PeeringEmptied  PeeringEvent = "emptied"  // the last hold was released
	PeeringElapsed  PeeringEvent = "elapsed"  // the phase's time has expired
	PeeringBroken   PeeringEvent = "broken"   // a step found the peering broken
	PeeringInUse    PeeringEvent = "inUse"    // the peering cannot be removed: another party uses it
	PeeringRefused  PeeringEvent = "refused"  // the provider refuses this cluster
	PeeringLifted   PeeringEvent = "lifted"   // the provider no longer refuses this cluster
)

// PeeringMove describes the effect of an event in a phase of a peering.
type PeeringMove struct {
	To PeeringPhase // empty: the phase stays
	// ToEmpty replaces To when no hold waits or is granted. But a peering that must be kept never moves to Removing
	// in this way. ToRefused replaces To while the provider refuses this cluster; the waiting holds are then refused.
	ToEmpty, ToRefused PeeringPhase
	// RefuseWaiting refuses every waiting hold before the move.
	RefuseWaiting bool
	// Grant grants every waiting hold.
	Grant bool
}

// PeeringRow describes one phase of a peering.
type PeeringRow struct {
	Phase PeeringPhase
	Runs  CommandKind // the command that starts the phase's workflow; empty: no workflow runs
	// Grants and Waits determine the result of an acquire: it is granted immediately, or it waits. If both are false,
	// the acquire is refused immediately.
	Grants, Waits bool
	Moves         map[PeeringEvent]PeeringMove // an event without a move is ignored
}

// PeeringMachine is the table of a peering's life. Like Machine, it is read by the code, the documents and the tests.
var PeeringMachine = []PeeringRow{
	{Phase: Absent, Waits: true, Moves: map[PeeringEvent]PeeringMove{
		PeeringAcquired: {To: Establishing}, PeeringRefused: {To: Refusing},
	}},
	{Phase: Establishing, Runs: CommandPeering, Waits: true, Moves: map[PeeringEvent]PeeringMove{
		PeeringAcquired: {}, PeeringDone: {To: Established, ToEmpty: Lingering, Grant: true},
		PeeringFailed: {To: Compensating, RefuseWaiting: true}, PeeringEmptied: {},
		PeeringRefused: {To: Compensating, RefuseWaiting: true},
	}},
	{Phase: Compensating, Runs: CommandUnpeering, Moves: map[PeeringEvent]PeeringMove{
		PeeringDone: {To: CoolOff, ToRefused: Refusing}, PeeringFailed: {To: CoolOff, ToRefused: Refusing},
		PeeringEmptied: {}, PeeringInUse: {To: CoolOff, ToRefused: Refusing}, PeeringRefused: {},
	}},
	{Phase: CoolOff, Moves: map[PeeringEvent]PeeringMove{
		PeeringEmptied: {}, PeeringElapsed: {To: Absent}, PeeringRefused: {To: Refusing},
	}},
	{Phase: Established, Grants: true, Moves: map[PeeringEvent]PeeringMove{
		PeeringAcquired: {}, PeeringEmptied: {To: Lingering}, PeeringBroken: {To: Repairing},
		PeeringRefused: {To: Refusing},
	}},
	{Phase: Repairing, Runs: CommandPeering, Waits: true, Moves: map[PeeringEvent]PeeringMove{
		PeeringAcquired: {}, PeeringDone: {To: Established, ToEmpty: Lingering, Grant: true},
		PeeringFailed: {To: Established, ToEmpty: Lingering, RefuseWaiting: true}, PeeringEmptied: {},
		PeeringRefused: {To: Refusing, ToEmpty: Removing, RefuseWaiting: true},
	}},
	{Phase: Lingering, Grants: true, Moves: map[PeeringEvent]PeeringMove{
		PeeringAcquired: {To: Established}, PeeringEmptied: {}, PeeringElapsed: {To: Removing},
		PeeringBroken: {To: Repairing}, PeeringRefused: {To: Refusing, ToEmpty: Removing},
	}},
	{Phase: Removing, Runs: CommandUnpeering, Waits: true, Moves: map[PeeringEvent]PeeringMove{
		PeeringAcquired: {}, PeeringDone: {To: Establishing, ToEmpty: Absent, ToRefused: Refusing},
		PeeringFailed:  {To: Lingering, ToRefused: Refusing, RefuseWaiting: true},
		PeeringEmptied: {}, PeeringElapsed: {RefuseWaiting: true},
		PeeringInUse:   {To: Established, ToEmpty: Lingering, ToRefused: Refusing, Grant: true},
		PeeringRefused: {RefuseWaiting: true},
	}},
	{Phase: Refusing, Moves: map[PeeringEvent]PeeringMove{
		PeeringEmptied: {ToEmpty: Removing}, PeeringElapsed: {To: Repairing, ToEmpty: Removing}, PeeringRefused: {},
		PeeringLifted: {To: Repairing, ToEmpty: Removing},
	}},
}

// Row returns the phase's row of PeeringMachine. It returns a row without moves for a phase that this version does not
// know.
func (p PeeringPhase) Row() PeeringRow {
	for _, r := range PeeringMachine {
		if r.Phase == p {
			return r
		}
	}
	return PeeringRow{Phase: p}
}
