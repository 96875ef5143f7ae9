package command

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/conformance"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit/golden"
)

// checked returns the output document for a provider, with one rule for each of the verdicts.
func checked(group string, verdicts ...conformance.Outcome) judged {
	c := judged{Address: "127.0.0.1:8086", Group: group}
	for i, v := range verdicts {
		c.Rules = append(c.Rules, conformance.Result{Outcome: v, Seen: "DeleteNodes answers OK:\n2 before, 2 after it",
			Rule: conformance.Rule{ID: "rule-" + string(rune('a'+i)), Demands: "It works.", Source: "core/x.go: CA relies on it",
				Fix: "make it work", Changes: group != ""}})
	}
	return c
}

func TestResultIsPrintedInEachFormat(t *testing.T) {
	for name, d := range map[string]output.Document{
		"checked":      checked("standard", conformance.Passed, conformance.Failed, conformance.Skipped),
		"checked-read": checked("", conformance.Passed),
	} {
		for _, format := range output.Formats {
			var out bytes.Buffer
			require.NoError(t, output.Print(&out, format, output.Style{}, d))
			golden.Check(t, filepath.Join("testdata", name+"."+format), out.String())
		}
	}
}
