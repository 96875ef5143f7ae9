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
