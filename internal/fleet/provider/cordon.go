package provider

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// An operator cordons a provider: nothing new is made there, what is there or on its way stays, and nobody is to blame.

// cordon puts the operator's word in force. Those that wait for the peering go elsewhere; it is made to its end, and
// lingers. Idempotent.
func (p *State) cordon(on bool, now time.Time) {
	p.Inherits = false
	if on == p.isCordoned() {
		return
	}
	p.Revision++
	if !on {
		p.Cordoned = time.Time{}
		return
	}
	p.Cordoned = now
	if p.firstWaiting().IsZero() {
		return
	}
	p.settle(fleet.HoldRefused, p.cordonedBy(), now)
	if p.Live() == 0 {
		p.Apply(fleet.PeeringEmptied, nil, now)
	}
}

// inherit takes over that the provider was cordoned when its last life ended: somebody has terminated or reset it.
func (p *State) inherit(cordoned bool, now time.Time) {
	if p.Inherits && cordoned {
		p.cordon(true, now)
	}
	p.Inherits = false
}

func (p *State) isCordoned() bool { return !p.Cordoned.IsZero() }

// cordonedBy is why nothing new is held: as of a provider that is full, which nobody remembers against it.
func (p *State) cordonedBy() *fleet.Failure {
	return fleet.NewFailure(fleet.CodeNoCapacity, p.ID, "", "provider "+p.ID+" is cordoned by an operator")
}
