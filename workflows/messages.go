package workflows

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// The messages below are wire formats: fields are only ever added.

// ConfigureRequest puts a spec in force.
type ConfigureRequest struct {
	Operation fleet.Operation `json:"operation"`
	Spec      fleet.GroupSpec `json:"spec"`
}

// SizeRequest grows or shrinks a group by Delta, which is positive in both.
type SizeRequest struct {
	Operation fleet.Operation `json:"operation"`
	Delta     int             `json:"delta"`
}

// ReleaseRequest asks instances back by name.
type ReleaseRequest struct {
	Operation fleet.Operation `json:"operation"`
	Names     []string        `json:"names"`
}

// AcquireRequest asks a provider for a hold.
type AcquireRequest struct {
	Key   string              `json:"key"`
	Shape corev1.ResourceList `json:"shape"`
	Offer fleet.Offer         `json:"offer"`
}

// HoldRequest gives a hold back.
type HoldRequest struct {
	Key string `json:"key"`
}

// Report is what a driver tells a node group. Number counts up within one driver's run; only a higher one is applied.
type Report struct {
	Instance string      `json:"instance"`
	From     string      `json:"from"` // the driver's workflow and run id
	Number   int         `json:"number"`
	Event    fleet.Event `json:"event"`
	// Closed says that the driver ends here; Event.Kind may then be empty.
	Closed bool `json:"closed,omitempty"`
}

// Leave tells a scale-out to let its instance go.
type Leave struct {
	// Undo says that the group takes nothing of the current attempt back: the scale-out has it undone itself.
	Undo bool `json:"undo,omitempty"`
}

// PeeringReport is what peering/<id> and unpeering/<id> tell a provider.
type PeeringReport struct {
	Run     int                `json:"run"`
	Event   fleet.PeeringEvent `json:"event"`
	Failure *fleet.Failure     `json:"failure,omitempty"`
}

// GroupState is a node group across continue-as-new.
type GroupState struct {
	Ledger  fleet.Packed       `json:"ledger"`
	Drivers map[string]*Driver `json:"drivers,omitempty"` // by instance
	// NextLook is when what exists is looked at next: a group that continues as new often looks as often as others.
	NextLook time.Time `json:"nextLook,omitzero"`
}

// Driver is the workflow that moves an instance now.
type Driver struct {
	WorkflowID string `json:"workflowId"`
	// LeaveSent is set once it was told to let the instance go.
	LeaveSent bool `json:"leaveSent,omitempty"`
	// Check is when the group makes sure that it still runs.
	Check time.Time `json:"check"`
	// From and Number identify the last report applied.
	From   string `json:"from,omitempty"`
	Number int    `json:"number,omitempty"`
}

// NodeGroupInput starts or continues a group.
type NodeGroupInput struct {
	Group string      `json:"group"`
	State *GroupState `json:"state,omitempty"` // nil: recover from what exists
	// ContinueAt is the history length at which it continues as new; 0 means the default.
	ContinueAt int `json:"continueAt,omitempty"`
}

// ProviderInput starts or continues a provider.
type ProviderInput struct {
	Provider string               `json:"provider"`
	State    *fleet.ProviderState `json:"state,omitempty"` // nil: recover from what exists
	// Starting says that the phase's driver is still to be started.
	Starting bool `json:"starting,omitempty"`
	// ContinueAt is as in NodeGroupInput.
	ContinueAt int `json:"continueAt,omitempty"`
}

// DriveInput starts scale-out or scale-in.
type DriveInput struct {
	Instance fleet.Instance `json:"instance"`
}

// UndoInput starts an undo.
type UndoInput struct {
	Attempt backend.Attempt `json:"attempt"`
}

// PeeringInput starts peering/<id> or unpeering/<id>.
type PeeringInput struct {
	Provider backend.Provider `json:"provider"`
	Run      int              `json:"run"`
	// Phase is the provider's, for the list of workflows.
	Phase fleet.PeeringPhase `json:"phase,omitempty"`
}
