package alerts_test

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// What a rule asks for is documented, so that a metric that is renamed is noticed; each alert says how bad it is and has
// a section of the runbook.
func TestRulesAreDocumented(t *testing.T) {
	metrics, runbook := read(t, "docs/metrics.md"), read(t, "docs/alerts.md")
	for _, r := range alertRules(t) {
		require.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.Contains(t, runbook, "\n## "+r.Alert+"\n")
		documented(t, metrics, r.Expr)
	}
}

// documented wants each metric of an expression to stand in docs/metrics.md.
func documented(t *testing.T, metrics, expr string) {
	t.Helper()
	parsed, err := promql.ParseExpr(expr)
	require.NoError(t, err, expr)
	asked := 0
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			asked++
			require.Regexp(t, "`"+base(s.Name)+"[`{]", metrics, expr)
		}
		return nil
	})
	require.NotZero(t, asked, expr)
}

// base is a metric as it is documented: of a histogram, what its series share.
func base(series string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		series = strings.TrimSuffix(series, suffix)
	}
	return series
}
