package alerts_test

import (
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// runbookPage is the page that describes the alerts. The chart can replace it by another page.
const runbookPage = "https://github.com/liqo-autoscaler/liqo-autoscaler/blob/main/docs/alerts.md"

// Every metric in a rule is documented, so that a renamed metric is noticed. Each alert has a severity, and a link to
// its section of the runbook.
func TestRulesAreDocumented(t *testing.T) {
	metrics, runbook := read(t, "docs/metrics.md"), read(t, "docs/alerts.md")
	for _, r := range alertRules(t) {
		require.Contains(t, []string{"critical", "warning", "info"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.Contains(t, runbook, "\n## "+r.Alert+"\n")
		require.Equal(t, runbookPage+"#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
		documented(t, metrics, r.Expr)
	}
}

// Each rule selects the metrics of one installation. Other applications that use Temporal also export the SDK's
// metrics, and another installation exports all metrics.
func TestRulesSelectOneInstallation(t *testing.T) {
	for _, r := range alertRules(t) {
		for _, s := range selectors(t, r.Expr) {
			require.Contains(t, matchers(s), anyJob, "%s: %s", r.Alert, s.Name)
			if hasQueue(s.Name) {
				require.Contains(t, matchers(s), anyQueue, "%s: %s", r.Alert, s.Name)
			}
		}
	}
}

// hasQueue reports whether a metric has the label task_queue; the Temporal SDK's worker metrics have it.
func hasQueue(metric string) bool {
	return strings.HasPrefix(metric, "temporal_") && !strings.HasPrefix(metric, "temporal_request") &&
		!strings.HasPrefix(metric, "temporal_long_request")
}

// matchers returns the label matchers of a selector in the form in which they are written.
func matchers(s *parser.VectorSelector) (written []string) {
	for _, m := range s.LabelMatchers {
		written = append(written, m.String())
	}
	return written
}

// selectors returns the vector selectors of an expression.
func selectors(t *testing.T, expr string) (all []*parser.VectorSelector) {
	t.Helper()
	parsed, err := promql.ParseExpr(expr)
	require.NoError(t, err, expr)
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			all = append(all, s)
		}
		return nil
	})
	require.NotEmpty(t, all, expr)
	return all
}

// documented requires that docs/metrics.md contains each metric of an expression.
func documented(t *testing.T, metrics, expr string) {
	t.Helper()
	for _, s := range selectors(t, expr) {
		require.Regexp(t, "`"+base(s.Name)+"[`{]", metrics, expr)
	}
}

// base returns the name under which a metric is documented. For the series of a histogram, this is the name without
// the suffix.
func base(series string) string {
	for _, suffix := range []string{"_bucket", "_count", "_sum"} {
		series = strings.TrimSuffix(series, suffix)
	}
	return series
}
