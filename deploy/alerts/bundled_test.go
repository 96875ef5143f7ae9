package alerts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAlertFiresForTheReleasesFullVolume checks the rule about the volume of a bundled Temporal, with the selectors
// of one release. The alert fires if the volume of this release is almost full. It does not fire if only the volume
// of another release is almost full.
func TestAlertFiresForTheReleasesFullVolume(t *testing.T) {
	const path = "deploy/helm/liqo-autoscaler/files/alerts-bundled.yaml"
	text := strings.ReplaceAll(read(t, path), `persistentvolumeclaim=~".*"`,
		`namespace="la", persistentvolumeclaim="data-la-0"`)
	require.Equal(t, 2, strings.Count(text, `persistentvolumeclaim="data-la-0"`))
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.Contains(t, read(t, "docs/alerts.md"), "\n## LiqoAutoscalerVolumeFills\n")
	claims := func(ours, others string) map[string][]string {
		return map[string][]string{
			"kubelet_volume_stats_used_bytes": {`{namespace="la", persistentvolumeclaim="data-la-0"} ` + ours + "x100",
				`{namespace="la", persistentvolumeclaim="data-db-0"} ` + others + "x100"},
			"kubelet_volume_stats_capacity_bytes": {`{namespace="la", persistentvolumeclaim="data-la-0"} 100x100`,
				`{namespace="la", persistentvolumeclaim="data-db-0"} 100x100`},
		}
	}
	require.Empty(t, firing(t, file, claims("79", "99"), 60))
	got := firing(t, file, claims("81", "10"), 10)
	require.Len(t, got, 1)
	require.Contains(t, got[0].summary, "The volume data-la-0 of the bundled Temporal")
}
