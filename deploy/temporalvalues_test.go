package deploy_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestTemporalsChartRendersWithOurValues renders Temporal's own chart with the values in docs/temporal-install.md. It
// checks that Pod Security's level restricted admits each pod, and that the installation has the documented number of
// objects. The variable TEMPORAL_CHART names the folder of the chart, which is not in this repository. If it is not
// set, the test is skipped.
func TestTemporalsChartRendersWithOurValues(t *testing.T) {
	folder := tool(t, "TEMPORAL_CHART")
	out, err := helm(t, "template", "temporal", folder, "--namespace", "temporal", "--kube-version", kube,
		"--values", "temporal/values.yaml")
	require.NoError(t, err, "%s", out)
	objects, test := 0, 0
	var pods []object
	for _, document := range bytes.Split(append([]byte("\n"), out...), []byte("\n---")) {
		var o object
		require.NoError(t, yaml.Unmarshal(document, &o.meta))
		typed := kinds()[o.meta.APIVersion+"/"+o.meta.Kind]
		if o.meta.Kind == "" {
			continue
		}
		require.NotNil(t, typed, o.meta.Kind)
		require.NoError(t, yaml.Unmarshal(document, typed))
		if objects++; typed.(metav1.Object).GetAnnotations()["helm.sh/hook"] == "test" {
			test++
			continue
		}
		o.typed = typed
		pods = append(pods, o)
	}
	specs := podSpecs(pods)
	require.Len(t, specs, 6)
	for name, pod := range specs {
		t.Run(name, func(t *testing.T) { requireRestricted(t, pod) })
	}
	require.Equal(t, 1, test)
	page, err := os.ReadFile("../docs/temporal-install.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "render 16 objects")
	require.Equal(t, 16, objects)
}
