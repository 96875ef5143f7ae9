package discovery

import (
	"cmp"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Problem is why an offer is not served, or why a whole source cannot be trusted as it is. It is for people, and may
// enter workflow histories.
type Problem struct {
	// Source is the name of the offer's Source.
	Source string `json:"source,omitempty"`
	// Offer is the offer's name; empty when the whole source is meant, several joined by ", ".
	Offer string `json:"offer,omitempty"`
	// Message says what is wrong and what to do, in at most 500 characters; only a refused document has one line per
	// fault, at most 40.
	Message string `json:"message"`
}

// String is "source: offer: message".
func (p Problem) String() string {
	parts := make([]string, 0, 3)
	if p.Source != "" {
		parts = append(parts, p.Source)
	}
	if p.Offer != "" {
		parts = append(parts, "offer "+p.Offer)
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// Cut shortens the message to what is kept.
func (p Problem) Cut() Problem {
	p.Offer, p.Message = shorten.To(p.Offer, maxMessage), shorten.To(p.Message, maxMessage)
	return p
}

const maxMessage = 500

func sortProblems(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Offer, b.Offer), cmp.Compare(a.Message, b.Message))
	})
}
