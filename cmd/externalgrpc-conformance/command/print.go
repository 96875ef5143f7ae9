package command

import (
	"fmt"
	"io"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/conformance"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// judged is the output document. It contains the result of each rule for one provider.
type judged struct {
	Address string               `json:"address"`
	Group   string               `json:"group,omitempty"`
	Rules   []conformance.Result `json:"rules"`
}

// Count returns the number of rules with the given outcome.
func (c judged) Count(verdict conformance.Outcome) (n int) {
	for _, r := range c.Rules {
		if r.Outcome == verdict {
			n++
		}
	}
	return n
}

// Table prints one line per rule, and then the remedies for the failed rules.
func (c judged) Table(out io.Writer, style output.Style) error {
	header := []string{"RULE", "VERDICT", "SEEN"}
	rows := output.Rows(c.Rules, func(r conformance.Result) []string {
		return []string{r.ID, string(r.Outcome), style.Cut(r.Seen)}
	})
	if style.Wide {
		header = []string{"RULE", "VERDICT", "DEMANDS", "SEEN"}
		rows = output.Rows(c.Rules, func(r conformance.Result) []string {
			return []string{r.ID, string(r.Outcome), r.Demands, r.Seen}
		})
	}
	if err := style.Table(out, header, rows); err != nil {
		return err
	}
	for _, r := range c.Rules {
		if r.Outcome == conformance.Failed {
			fmt.Fprintf(out, "\n%s: %s\n  seen: %s\n  why:  %s\n  fix:  %s\n", r.ID, r.Demands,
				shorten.OneLine(r.Seen), r.Source, r.Fix)
		}
	}
	fmt.Fprintf(out, "\n%d rules: %d passed, %d failed, %d skipped\n", len(c.Rules), c.Count(conformance.Passed),
		c.Count(conformance.Failed), c.Count(conformance.Skipped))
	if c.Group == "" {
		fmt.Fprintln(out, "Rules that change a node group were omitted: --change --group ID checks them too.")
	}
	return nil
}
