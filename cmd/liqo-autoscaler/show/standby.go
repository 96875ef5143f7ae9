package show

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Standby is a peering that a group keeps ready: waiting is one that is being made.
type Standby struct {
	Provider string          `json:"provider"`
	Group    string          `json:"group"`
	State    fleet.HoldState `json:"state"`
	Since    time.Time       `json:"since"`
}
