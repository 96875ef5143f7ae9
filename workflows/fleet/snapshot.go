package fleet

import "time"

// State is an instance as CA sees it.
type State string

// The states of externalgrpc's InstanceStatus.
const (
	StateCreating State = "creating"
	StateRunning  State = "running"
	StateDeleting State = "deleting"
)

// Snapshot is what a NodeGroup publishes in its memo after every change: all that the gRPC server answers from.
// A snapshot replaces another only when Newer says so.
type Snapshot struct {
	Group string `json:"group"`
	Epoch string `json:"epoch"`
	// Sequence rises by one with each change within an epoch.
	Sequence int64 `json:"sequence"`
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
	Frozen    bool           `json:"frozen,omitempty"`
	Instances []InstanceView `json:"instances,omitempty"`
	// At is the workflow's clock when the snapshot was taken.
	At time.Time `json:"at"`
}

// InstanceView is one instance in a Snapshot. Released instances are not listed.
type InstanceView struct {
	Name    string   `json:"name"`
	Phase   Phase    `json:"phase"`
	State   State    `json:"state"`
	Counts  bool     `json:"counts,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
	Attempt int      `json:"attempt,omitempty"`
	// Provider is the Liqo cluster id of the current attempt, empty before one is selected.
	Provider string    `json:"provider,omitempty"`
	Since    time.Time `json:"since"`
	NotReady bool      `json:"notReady,omitempty"`
	Stuck    string    `json:"stuck,omitempty"`
	// Registered is true once the Node carries the instance id as providerID.
	Registered bool `json:"registered,omitempty"`
}

// ID is the instance id CA knows it by.
func (v InstanceView) ID(group string) string { return InstanceID(group, v.Name) }

// Newer tells whether s may replace old: a later life of the group, or a later change in the same one.
// Epochs are base 36 seconds, so they compare by length first.
func (s Snapshot) Newer(old Snapshot) bool {
	if s.Epoch != old.Epoch {
		if len(s.Epoch) != len(old.Epoch) {
			return len(s.Epoch) > len(old.Epoch)
		}
		return s.Epoch > old.Epoch
	}
	return s.Sequence > old.Sequence
}
