package fleet

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// ProviderRefusal is a provider's no to this cluster as a whole. It stays in force until the provider lifts it, or its
// time is over.
type ProviderRefusal struct {
	Kind RefusingKind `json:"kind"`
	// Reason is a sentence in the provider's words, as far as it has any.
	Reason string `json:"reason"`
	// Until is when it ends by itself; zero: only the provider lifts it.
	Until time.Time `json:"until,omitzero"`
}

// maxRefusal bounds ProviderRefusal.Reason.
const maxRefusal = 300

// RefusingKind is how a provider refuses.
type RefusingKind string

// The kinds.
const (
	RefusingCordoned RefusingKind = "Cordoned" // it takes no new nodes; those that are there stay
	RefusingDrained  RefusingKind = "Drained"  // it has taken back all that it gave
	RefusingRemoved  RefusingKind = "Removed"  // it has removed its part of the peering
)

// Over reports whether its time is over.
func (r ProviderRefusal) Over(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// Times of a refusal.
const (
	firstQuestion = time.Minute     // when the provider is first asked whether it still refuses
	nextQuestion  = 5 * time.Minute // and then
)

// inForce is the refusal that is in force, or nil: then nobody gets a hold, whatever the phase.
func (p *ProviderState) inForce(now time.Time) *ProviderRefusal {
	if p.Refusing == nil || p.Refusing.Over(now) {
		return nil
	}
	return p.Refusing
}

// refusal is the refusal as the reason of a refused hold.
func (p *ProviderState) refusal() *Failure {
	return NewFailure(CodeRefused, p.ID, "", "provider "+p.ID+" refuses this cluster: "+p.Refusing.Reason)
}

// told takes that the provider refuses us.
func (p *ProviderState) told(r *ProviderRefusal, now time.Time) {
	if r == nil || r.Over(now) {
		return
	}
	noted := *r
	noted.Reason = shorten.To(noted.Reason, maxRefusal)
	p.Refusing = &noted
	p.Apply(PeeringRefused, p.refusal(), now)
}

// ask has the provider asked, now and then, whether it still refuses.
func (p *ProviderState) ask(now time.Time) {
	if due := p.askDue(); due.IsZero() || now.Before(due) {
		return
	}
	p.Checked = now
	p.Commands.Add(Command{Kind: CommandAsk})
}

// askDue is when the provider is asked next; zero while it is being asked, or does not refuse.
func (p *ProviderState) askDue() time.Time {
	switch {
	case p.Phase != Refusing || p.Offer == nil || p.Commands.Has(func(c Command) bool { return c.Kind == CommandAsk }):
		return time.Time{}
	case p.Checked.IsZero():
		return p.Since.Add(firstQuestion)
	default:
		return p.Checked.Add(nextQuestion)
	}
}

// asked takes what the provider said. That it could not be asked changes nothing.
func (p *ProviderState) asked(r Result, now time.Time) {
	p.Checked = now
	switch {
	case r.Outcome != OutcomeDone || p.Phase != Refusing:
	case r.Refusing == nil:
		p.Apply(PeeringLifted, nil, now)
	default:
		p.told(r.Refusing, now)
	}
}

// keeps reports whether the peering is to be kept when nobody holds it.
func (p *ProviderState) keeps() bool { return p.Offer != nil && p.Offer.Unpeer == UnpeerNever }
