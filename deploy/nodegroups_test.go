package deploy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/config"
)

// The chart checks the groups and does not change them. If a group has a selector, the chart does not merge it with
// the selector of the defaults. If a group sets min to 0, the default for min does not apply.
func TestChartDoesNotChangeNodeGroups(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(values, []byte(`
nodeGroupDefaults: {min: 5, max: 8, selector: {matchLabels: {country: it}}}
nodeGroups:
- {id: small, min: 0, max: 4, shape: {cpu: 2, memory: 4Gi, pods: 110}, selector: {matchExpressions: [{key: a, operator: Exists}]}}
`), 0o600))
	configMap := one[corev1.ConfigMap](t, render(t, "plaintext", "--values", values), namespace, release+"-nodegroups")
	cfg, err := config.Parse([]byte(configMap.Data["nodegroups.yaml"]))
	require.NoError(t, err)
	require.Empty(t, cfg.NodeGroups[0].Selector.MatchLabels)
	require.Zero(t, cfg.NodeGroups[0].Min)
}
