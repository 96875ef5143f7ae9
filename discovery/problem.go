package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Problem explains why an offer is not used, or why the offers of a whole source may be outdated. It is a text for
// operators, and may be stored in workflow histories.
type Problem struct {
	// Source is the name of the offer's Source.
	Source string `json:"source,omitempty"`
	// Offer is the offer's name, or several names joined by ", ". It is empty when the Problem concerns the whole source.
	Offer string `json:"offer,omitempty"`
	// Message is the fault and its remedy, in at most 500 characters. If a whole document is refused, Message has one
	// line per fault, and at most 40 lines.
	Message string `json:"message"`
}

// NewProblem returns a Problem whose text is cut to the maximum length.
func NewProblem(source, offer, format string, args ...any) Problem {
	return Problem{Source: source, Offer: shorten.Words(offer, maxMessage),
		Message: shorten.Words(fmt.Sprintf(format, args...), maxMessage)}
}

// String returns "source: offer: message".
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

const maxMessage = 500

func sortProblems(ps []Problem) {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Offer, b.Offer), cmp.Compare(a.Message, b.Message))
	})
}
