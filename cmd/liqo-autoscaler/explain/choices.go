package explain

import (
	"cmp"
	"io"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Choices contains a node group's last choices of providers, the oldest choice first.
type Choices struct {
	Group string `json:"group"`
	// Since is the time of the first choice, or zero without choices.
	Since   time.Time      `json:"since,omitzero"`
	Choices []fleet.Choice `json:"choices"`
}

// OfGroup returns the choices that a group has published.
func OfGroup(group string, choices []fleet.Choice) Choices {
	c := Choices{Group: group, Choices: choices}
	if len(choices) > 0 {
		c.Since = choices[0].At
	}
	return c
}

// Text prints the choices as text.
func (c Choices) Text(out io.Writer) error {
	var t page
	if len(c.Choices) == 0 {
		t.line(0, "node group %s has no recorded decision", c.Group)
		return t.to(out)
	}
	t.line(0, "node group %s: the last %d decisions, since %s", c.Group, len(c.Choices), c.Since.Format(time.RFC3339))
	for _, d := range c.Choices {
		t.line(1, "%s  %s, attempt %d: %s: %s", d.At.Format(time.RFC3339), d.Instance, d.Attempt,
			cmp.Or(d.Provider, "failed"), d.Reason)
	}
	return t.to(out)
}
