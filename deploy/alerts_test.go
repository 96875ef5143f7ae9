package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// ofRelease replaces the selectors in the rules file by the selectors of a release, as deploy/alerts does. queue is a
// regular expression within a string of PromQL, so its backslashes are doubled.
func ofRelease(release, queue, rules string) string {
	var lanes []string
	for _, lane := range workflows.Lanes {
		if lane != workflows.LaneEntities {
			lanes = append(lanes, string(lane))
		}
	}
	return strings.NewReplacer(`job=~".*"`, release, `task_queue=~"liqo-autoscaler(-.+)?"`,
		`task_queue=~"`+queue+`(`+strings.Join(lanes, "|")+`)?"`).Replace(rules)
}

// The chart's rules select the namespace, the hub and the task queues of the release.
func TestRulesSelectOneRelease(t *testing.T) {
	file, err := os.ReadFile(filepath.Join(chart, "files/alerts.yaml"))
	require.NoError(t, err)
	for queue, values := range map[string]string{
		`liqo-autoscaler`:      "hub=default",
		`liqo-autoscaler-east`: "hub=east",
		`la\\.queue-east`:      `hub=east,temporal.taskQueue=la.queue`,
	} {
		hub, _, _ := strings.Cut(strings.TrimPrefix(values, "hub="), ",")
		rule := one[prometheusRule](t, render(t, "plaintext", "--set", "metrics.prometheusRule.enabled=true,"+values),
			namespace, release)
		var want prometheusRule
		require.NoError(t, yaml.UnmarshalStrict([]byte(ofRelease(`namespace="`+namespace+`", hub=~"(`+hub+`)?"`,
			queue, string(file))), &want.Spec))
		require.Equal(t, want.Spec, rule.Spec, values)
	}
}

// The annotation runbook_url of each alert leads to the alert's section of docs/alerts.md, or of the page that the
// values name.
func TestAlertsLinkToTheirRunbook(t *testing.T) {
	const page, own = "https://github.com/liqo-autoscaler/liqo-autoscaler/blob/main/docs/alerts.md",
		"https://wiki.example/on-call"
	for base, set := range map[string][]string{page: nil, own: {"metrics.prometheusRule.runbookURL=" + own}} {
		args := bundled(append(set, "metrics.prometheusRule.enabled=true")...)
		rule := one[prometheusRule](t, render(t, "plaintext", args...), namespace, release)
		require.Len(t, rule.Spec.Groups, 2)
		for _, g := range rule.Spec.Groups {
			for _, r := range g.Rules {
				require.Equal(t, base+"#"+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
				require.NotEmpty(t, r.Annotations["summary"], r.Alert)
			}
		}
	}
	for _, wrong := range []string{"wiki.example", "https://wiki.example/a#b", "https://wiki.example/a b"} {
		_, err := template(t, "--values", valuesFile("plaintext"), "--set-string", "metrics.prometheusRule.runbookURL="+wrong)
		require.Error(t, err, wrong)
	}
}
