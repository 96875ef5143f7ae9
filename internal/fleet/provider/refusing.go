package provider

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// maxRefusal bounds ProviderRefusal.Reason.
const maxRefusal = 300

// Times of a refusal.
const (
	firstQuestion = time.Minute     // when the provider is first asked whether it still refuses
	nextQuestion  = 5 * time.Minute // and then
)

// inForce is the refusal that is in force, or nil: then nobody gets a hold, whatever the phase.
func (p *State) inForce(now time.Time) *fleet.ProviderRefusal {
	if p.Refusing == nil || p.Refusing.Over(now) {
		return nil
	}
	return p.Refusing
}

// refusal is the refusal as the reason of a refused hold.
func (p *State) refusal() *fleet.Failure {
	return fleet.NewFailure(fleet.CodeRefused, p.ID, "", "provider "+p.ID+" refuses this cluster: "+p.Refusing.Reason)
}

// told takes that the provider refuses us.
func (p *State) told(r *fleet.ProviderRefusal, now time.Time) {
	if r == nil || r.Over(now) {
		return
	}
	noted := *r
	noted.Reason = shorten.Words(noted.Reason, maxRefusal)
	p.Refusing = &noted
	p.Apply(fleet.PeeringRefused, p.refusal(), now)
}

// ask has the provider asked, now and then, whether it still refuses.
func (p *State) ask(now time.Time) {
	if due := p.askDue(); due.IsZero() || now.Before(due) {
		return
	}
	p.Checked = now
	p.Commands.Add(fleet.Command{Kind: fleet.CommandRefusal})
}

// askDue is when the provider is asked next; zero while it is being asked, or does not refuse.
func (p *State) askDue() time.Time {
	switch {
	case p.Phase != fleet.Refusing || p.Offer == nil || p.Commands.Has(fleet.CommandRefusal):
		return time.Time{}
	case p.Checked.IsZero():
		return p.Since.Add(firstQuestion)
	default:
		return p.Checked.Add(nextQuestion)
	}
}

// asked takes what the provider said. That it could not be asked changes nothing.
func (p *State) asked(r fleet.Result, now time.Time) {
	p.Checked = now
	switch {
	case r.Outcome != fleet.OutcomeDone || p.Phase != fleet.Refusing:
	case r.Refusing == nil:
		p.Apply(fleet.PeeringLifted, nil, now)
	default:
		p.told(r.Refusing, now)
	}
}

// keeps reports whether the peering is to be kept when nobody holds it.
func (p *State) keeps() bool { return p.Offer != nil && p.Offer.Unpeer == fleet.UnpeerNever }
