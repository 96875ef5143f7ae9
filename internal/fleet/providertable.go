package fleet

// PeeringPhase is where a Provider's peering is.
type PeeringPhase string

// The phases of a peering.
const (
	Absent       PeeringPhase = "Absent"
	Establishing PeeringPhase = "Establishing"
	Compensating PeeringPhase = "Compensating"
	CoolOff      PeeringPhase = "CoolOff"
	Established  PeeringPhase = "Established"
	Repairing    PeeringPhase = "Repairing"
	Lingering    PeeringPhase = "Lingering"
	Removing     PeeringPhase = "Removing"
	Refusing     PeeringPhase = "Refusing" // the provider refuses us, until it lifts that or its time is over
)

// PeeringEvent is what just happened to a peering.
type PeeringEvent string

// The events of a peering.
const (
	PeeringAcquired PeeringEvent = "acquired" // a hold was booked
	PeeringDone     PeeringEvent = "done"     // peering/<id> or unpeering/<id> reached its end
	PeeringFailed   PeeringEvent = "failed"   // it failed, used up its bound or was cancelled
	PeeringEmptied  PeeringEvent = "emptied"  // the last hold was released
	PeeringElapsed  PeeringEvent = "elapsed"  // the phase's time is over
	PeeringBroken   PeeringEvent = "broken"   // a step found the peering broken
	PeeringInUse    PeeringEvent = "inUse"    // it cannot be removed: someone else uses it
	PeeringRefused  PeeringEvent = "refused"  // the provider refuses us
	PeeringLifted   PeeringEvent = "lifted"   // it no longer does
)

// PeeringMove is the effect of an event in a phase of a peering.
type PeeringMove struct {
	To PeeringPhase // empty: it stays
	// ToEmpty is where it goes instead when no hold is left; not to Removing if the peering is to be kept. ToRefused is
	// where it goes instead while the provider refuses us, with those that wait refused.
	ToEmpty, ToRefused PeeringPhase
	// RefuseWaiting refuses every hold that is still waiting, first of all.
	RefuseWaiting bool
	// Grant grants every hold that is waiting.
	Grant bool
}

// PeeringRow is one phase of a peering.
type PeeringRow struct {
	Phase PeeringPhase
	Runs  CommandKind // starts the phase's workflow; empty: none runs
	// Grants says what an acquire gets: granted at once, or to wait; neither means refused at once.
	Grants, Waits bool
	Moves         map[PeeringEvent]PeeringMove // of those that mean something here; any other is ignored
}

// PeeringMachine is the table of a peering's life; data, as Machine is.
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

// Row returns the phase's row of PeeringMachine; the zero row for a phase this version does not know.
func (p PeeringPhase) Row() PeeringRow {
	for _, r := range PeeringMachine {
		if r.Phase == p {
			return r
		}
	}
	return PeeringRow{Phase: p}
}
