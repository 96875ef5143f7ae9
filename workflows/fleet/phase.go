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
