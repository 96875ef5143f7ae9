package alerts_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"
)

const ruleFile = "../helm/liqo-autoscaler/files/alerts.yaml"

var promql = parser.NewParser(parser.Options{})

// alertRules returns the chart's alert rules.
func alertRules(t *testing.T) (all []rulefmt.Rule) {
	t.Helper()
	groups, errs := rulefmt.ParseFile(ruleFile, false, model.UTF8Validation, promql, slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	for _, g := range groups.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// fired is an alert that fires, with its summary.
type fired struct{ name, summary string }

// firing evaluates a rules file with the metrics in served, which have one sample for each minute. It returns the
// alerts that fire after the given number of minutes. It requires that no alert fires earlier.
func firing(t *testing.T, file string, served map[string][]string, minutes int) (all []fired) {
	t.Helper()
	load := "load 1m\n"
	for metric, series := range served {
		for _, s := range series {
			load += "  " + metric + s + "\n"
		}
	}
	samples, err := promqltest.NewLazyLoader(load, promqltest.LazyLoaderOpts{EnableAtModifier: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, samples.Close()) }()
	groups, errs := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(samples.QueryEngine(), samples.Storage()), Appendable: samples.Storage(),
		Queryable: samples.Storage(), Context: t.Context(), Logger: slog.New(slog.DiscardHandler), Parser: promql,
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	}).LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, file)
	require.Empty(t, errs)
	for minute := range minutes + 1 {
		require.Empty(t, all, "%d minutes before", minutes+1-minute)
		now := time.Unix(int64(minute)*60, 0).UTC()
		samples.WithSamplesTill(now, func(err error) { require.NoError(t, err) })
		for _, g := range groups {
			g.Eval(t.Context(), now)
			all = append(all, active(t, g)...)
		}
	}
	return all
}

// active returns the alerts of a group of rules that fire now.
func active(t *testing.T, g *rules.Group) (all []fired) {
	t.Helper()
	for _, r := range g.AlertingRules() {
		require.NoError(t, r.LastError(), r.Name())
		for _, a := range r.ActiveAlerts() {
			if a.State == rules.StateFiring {
				all = append(all, fired{r.Name(), a.Annotations.Get("summary")})
			}
		}
	}
	return all
}

// read returns a file of the repository.
func read(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{"../.."}, path...)...))
	require.NoError(t, err)
	return string(content)
}
