package connect

import (
	"fmt"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// hubFlag is a flag whose value is a hub.
type hubFlag workflows.Hub

func (f *hubFlag) String() string { return string(*f) }
func (f *hubFlag) Type() string   { return "string" }
func (f *hubFlag) Set(name string) error {
	if !fleet.ValidHub(name) {
		return fmt.Errorf("use at most %d lower-case letters, digits and dashes, with a letter or digit at both ends",
			fleet.MaxHub)
	}
	*f = hubFlag(name)
	return nil
}
