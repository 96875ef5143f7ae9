package fleet

// Phase is where an instance is.
type Phase string

// The phases of an instance, in the order of its life.
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

// Step is the activity that tries to move an instance on.
type Step string

// The steps. The empty one belongs to phases that wait for an event only.
const (
	StepNone               Step = ""
	StepDiscover           Step = "Discover"
	StepSelect             Step = "Select"
	StepPeer               Step = "Peer"
	StepWaitForVirtualNode Step = "WaitForVirtualNode"
	StepDrain              Step = "Drain"
	StepUnpeer             Step = "Unpeer"
)
