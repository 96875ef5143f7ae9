package provider

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// This file handles an operator's cordon: the provider grants no new holds, and the existing holds and the peering
// stay. An instance does not count the refusal as a failure of the provider.

// cordon applies the operator's order to cordon or uncordon. It refuses waiting holds, so that their attempts choose
// another provider. A peering that is being established is completed, and then lingers. The order is idempotent.
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

// inherit restores the cordon that was in effect when the previous workflow of the provider was terminated or reset.
func (p *State) inherit(cordoned bool, now time.Time) {
	if p.Inherits && cordoned {
		p.cordon(true, now)
	}
	p.Inherits = false
}

func (p *State) isCordoned() bool { return !p.Cordoned.IsZero() }

// cordonedBy returns the failure of a hold that is refused because of the cordon. It has the code of a full provider,
// because a driver does not count this code as a failure of the provider.
func (p *State) cordonedBy() *fleet.Failure {
	return fleet.NewFailure(fleet.CodeNoCapacity, p.ID, "", "provider "+p.ID+" is cordoned by an operator")
}
