package show

import (
	"io"
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

func (s Status) standbyTable(out io.Writer, look Look) error {
	var rows [][]string
	for _, h := range s.Standby {
		rows = append(rows, []string{h.Provider, h.Group, string(h.State), look.age(h.Since)})
	}
	return table(out, []string{"STANDBY", "GROUP", "STATE", "SINCE"}, rows)
}
