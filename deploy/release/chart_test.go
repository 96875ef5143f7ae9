package release_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// charts pulls each chart, and checks its signature and that it runs the image of the release.
func (r *release) charts(t *testing.T) {
	for chart, values := range map[string]string{"liqo-autoscaler": "plaintext", "liqo-autoscaler-agent": "least"} {
		ref := r.registry + "/charts/" + chart
		r.signed(t, ref+":"+version)
		folder := t.TempDir()
		r.run(t, r.folder, "bin/helm", "pull", "oci://"+ref, "--version", version, "--plain-http", "-d", folder)
		rendered := r.run(t, r.folder, "bin/helm", "template", "x", filepath.Join(folder, chart+"-"+version+".tgz"),
			"--kube-version", "v1.33.1", "-f", "deploy/helm/"+chart+"/ci/"+values+"-values.yaml")
		require.Contains(t, rendered, `image: "ghcr.io/liqo-autoscaler/`+chart+`:`+version+`"`)
		require.Contains(t, rendered, `helm.sh/chart: `+chart+`-`+version)
	}
}

// The workflows are correct as far as GitHub's syntax, expressions and the inputs of well-known actions go.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 2)
	out, err := exec.CommandContext(t.Context(), tool(t, "actionlint"), files...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
