package deploy_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// doctorFinds runs `liqo-autoscaler doctor` as the cluster's administrator. It returns the ids of the findings.
func doctorFinds(t *testing.T, c *cluster, args ...string) (ids []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, "LIQO_AUTOSCALER"), append([]string{"doctor", "-o", "json",
		"--kubeconfig", c.kubeconfig, "--temporal-address", "127.0.0.1:1"}, args...)...)
	out, err := cmd.Output()
	var report struct {
		Findings    []struct{ ID, Where, Message string }
		NotExamined []string
	}
	require.NoError(t, json.Unmarshal(out, &report), "%s", out)
	require.Empty(t, report.NotExamined)
	require.Error(t, err, "Temporal is not there, so it exits with 1")
	for _, f := range report.Findings {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
