package provider

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// maxRefusal bounds the length of ProviderRefusal.Reason.
const maxRefusal = 300

// These are the intervals of the checks whether a provider still refuses.
const (
	firstRefusalCheck = time.Minute     // from the refusal to the first check
	nextRefusalCheck  = 5 * time.Minute // between later checks
)

// presentRefusal returns the present refusal, or nil. During a refusal no hold is granted in any phase.
func (p *State) presentRefusal(now time.Time) *fleet.ProviderRefusal {
	if p.Refusing == nil || p.Refusing.Over(now) {
		return nil
	}
	return p.Refusing
}

// refusal returns the refusal as the failure of a refused hold.
func (p *State) refusal() *fleet.Failure {
	return fleet.NewFailure(fleet.CodeRefused, p.ID, "", "provider "+p.ID+" refuses this cluster: "+p.Refusing.Reason)
}

// recordRefusing records that the provider refuses this cluster, and applies PeeringRefused.
func (p *State) recordRefusing(r *fleet.ProviderRefusal, now time.Time) {
	if r == nil || r.Over(now) {
		return
	}
	refusing := *r
	refusing.Reason = shorten.Words(refusing.Reason, maxRefusal)
	p.Refusing = &refusing
	p.Apply(fleet.PeeringRefused, p.refusal(), now)
}

// checkRefusal adds the command that checks whether the provider still refuses, when the check is due.
func (p *State) checkRefusal(now time.Time) {
	if due := p.refusalCheckDue(); due.IsZero() || now.Before(due) {
		return
	}
	p.Checked = now
	p.Commands.Add(fleet.Command{Kind: fleet.CommandRefusal})
}

// refusalCheckDue returns the time of the next check whether the provider still refuses. It returns zero while a
// check runs, and while the provider does not refuse.
func (p *State) refusalCheckDue() time.Time {
	switch {
	case p.Phase != fleet.Refusing || p.Offer == nil || p.Commands.Has(fleet.CommandRefusal):
		return time.Time{}
	case p.Checked.IsZero():
		return p.Since.Add(firstRefusalCheck)
	default:
		return p.Checked.Add(nextRefusalCheck)
	}
}

// applyRefusalCheck processes the result of the check. A failed check changes nothing.
func (p *State) applyRefusalCheck(r fleet.Result, now time.Time) {
	p.Checked = now
	switch {
	case r.Outcome != fleet.OutcomeDone || p.Phase != fleet.Refusing:
	case r.Refusing == nil:
		p.Apply(fleet.PeeringLifted, nil, now)
	default:
		p.recordRefusing(r.Refusing, now)
	}
}

// isKept reports whether the peering is kept when it has no holds.
func (p *State) isKept() bool { return p.Offer != nil && p.Offer.Unpeer == fleet.UnpeerNever }
