package alerts_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each panel queries documented metrics of one installation, with expressions that Prometheus can parse. The panels do
// not overlap.
func TestDashboardQueriesDocumentedMetrics(t *testing.T) {
	var board struct {
		Panels []struct {
			ID                       int
			Type, Title, Description string
			GridPos                  struct{ H, W, X, Y int }
			Targets                  []struct{ Expr string }
		}
	}
	metrics := read(t, "docs/metrics.md")
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy/helm/liqo-autoscaler/files/dashboard.json")), &board))
	require.NotEmpty(t, board.Panels)
	taken := map[[2]int]string{}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$namespace", "la", "$group", "large", "$job", "la-metrics",
		"$hub", "edge", "$task_queue", "liqo-autoscaler")
	for n, p := range board.Panels {
		require.Equal(t, n+1, p.ID, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		require.Equal(t, p.GridPos.Y == 0, p.Type == "stat", "%s: the first row has the numbers", p.Title)
		for _, target := range p.Targets {
			expr := variables.Replace(target.Expr)
			documented(t, metrics, expr)
			ofOneInstallation(t, p.Title, expr)
		}
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			at := [2]int{p.GridPos.X + x, p.GridPos.Y}
			require.Empty(t, taken[at], "%s overlaps", p.Title)
			taken[at] = p.Title
		}
	}
}

// ofOneInstallation checks that each selector of a panel contains the variables by which the dashboard selects one
// installation.
func ofOneInstallation(t *testing.T, title, expr string) {
	t.Helper()
	for _, s := range selectors(t, expr) {
		require.Subset(t, matchers(s), []string{`namespace="la"`, `job=~"la-metrics"`, `hub=~"edge"`}, "%s: %s", title, s.Name)
		if hasQueue(s.Name) {
			require.Contains(t, matchers(s), `task_queue=~"liqo-autoscaler"`, "%s: %s", title, s.Name)
		}
	}
}

// TestDashboardShowsNoNormalAnswerAsAProblem checks expressions of the dashboard. The panels of problems show neither
// normal answers nor providers without a problem. There are panels for the costs. The panel of scale-out durations
// uses our own histogram, which has fine buckets.
func TestDashboardShowsNoNormalAnswerAsAProblem(t *testing.T) {
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "deploy/helm/liqo-autoscaler/files/dashboard.json")), &board))
	expressions := map[string]string{}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			expressions[p.Title] += target.Expr + "\n"
		}
	}
	for title, part := range map[string]string{
		"Failed calls to Temporal per minute":              `status_code!~"ALREADY_EXISTS|NOT_FOUND"`,
		"Failed calls of Cluster Autoscaler per minute":    `code!~"OK|Unimplemented|NotFound"`,
		"Providers with a condition":                       "> 0",
		"Cost per hour":                                    "liqo_autoscaler_cost_per_hour{",
		"Cost this month":                                  "liqo_autoscaler_cost_month{",
		"Cost per hour by provider":                        "by (provider, currency)",
		"Cost this month and monthly limits":               "liqo_autoscaler_spending_limit{",
		"Target size, offered maximum, configured maximum": "liqo_autoscaler_group_offered_max_size{",
		// The SDK's histogram of workflows has no bucket between 60 and 300 seconds.
		"Scale-out duration": "liqo_autoscaler_scale_out_duration_seconds_bucket{",
	} {
		require.Contains(t, expressions[title], part, title)
	}
}
