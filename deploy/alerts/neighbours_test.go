package alerts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// These constants are selectors in the rules. The chart replaces them by the selectors of the release. The test
// TestRulesSelectOneRelease (in deploy/) checks that the chart replaces exactly these selectors.
const (
	anyJob   = `job=~".*"`
	anyQueue = `task_queue=~"liqo-autoscaler(-.+)?"`
)

// selected contains the selectors of our installation in the form in which the chart writes them. Metrics of the
// discovery server have no label hub.
const selected = `namespace="la", job="la-metrics", hub=~"(default)?"`

// application is an application whose metrics are in the same Prometheus as ours.
type application struct {
	target, queue string
	foreign       bool // another application that uses Temporal; only the SDK's metrics have the same names as ours
}

var (
	ours    = application{target: `namespace="la", job="la-metrics", hub="default"`, queue: "liqo-autoscaler"}
	billing = application{target: `namespace="la", job="billing"`, queue: "billing", foreign: true}
	// west is an installation in another namespace. south is an installation in our namespace with its own hub and
	// its own job. near is an installation in our namespace that the same job scrapes.
	west  = application{target: `namespace="west", job="la-metrics", hub="default"`, queue: "liqo-autoscaler"}
	south = application{target: `namespace="la", job="south-metrics", hub="south"`, queue: "liqo-autoscaler-south"}
	near  = application{target: `namespace="la", job="la-metrics", hub="near"`, queue: "liqo-autoscaler-near"}
)

// serves returns the samples with the labels of the application.
func (a application) serves(samples map[string][]string) map[string][]string {
	as := strings.NewReplacer(`namespace="la"`, a.target, `task_queue="liqo-autoscaler`, `task_queue="`+a.queue)
	served := map[string][]string{}
	for metric, series := range samples {
		for _, s := range series {
			if !a.foreign || strings.HasPrefix(metric, "temporal_") {
				served[metric] = append(served[metric], as.Replace(s))
			}
		}
	}
	return served
}

// together merges the metrics of several applications.
func together(all ...map[string][]string) map[string][]string {
	served := map[string][]string{}
	for _, samples := range all {
		for metric, series := range samples {
			served[metric] = append(served[metric], series...)
		}
	}
	return served
}

// rendered writes the rules to a file, as the chart renders them for our installation.
func rendered(t *testing.T) (file string) {
	t.Helper()
	rules, err := os.ReadFile(ruleFile)
	require.NoError(t, err)
	here := strings.NewReplacer(anyJob, selected, anyQueue, `task_queue=~"liqo-autoscaler(-drivers|-making|-removing)?"`)
	file = filepath.Join(t.TempDir(), "alerts.yaml")
	require.NoError(t, os.WriteFile(file, []byte(here.Replace(string(rules))), 0o600))
	return file
}
