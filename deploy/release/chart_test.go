package release_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"
)

// charts pulls each chart from the registry. It checks the signature of the chart, and that the chart runs the image
// of the release.
func (r *release) charts(t *testing.T) {
	for chart, values := range map[string]string{"liqo-autoscaler": "plaintext", "liqo-autoscaler-agent": "least"} {
		ref := r.registry + "/charts/" + chart
		r.signed(t, ref+":"+version)
		folder := t.TempDir()
		r.run(t, r.folder, "bin/helm", "pull", "oci://"+ref, "--version", version, "--plain-http", "-d", folder)
		rendered := r.run(t, r.folder, "bin/helm", "template", "x", filepath.Join(folder, chart+"-"+version+".tgz"),
			"--kube-version", "v1.33.1", "-f", "deploy/helm/"+chart+"/ci/"+values+"-values.yaml")
		index, err := remote.Index(reference(t, r.image()+strings.TrimPrefix(chart, "liqo-autoscaler")+":"+version))
		require.NoError(t, err)
		digest, err := index.Digest()
		require.NoError(t, err)
		require.Contains(t, rendered, `image: "ghcr.io/liqo-autoscaler/`+chart+`@`+digest.String()+`"`)
		require.Contains(t, rendered, `helm.sh/chart: `+chart+`-`+version)
	}
}

// The GitHub workflows have valid syntax and expressions, and pass valid inputs to well-known actions.
func TestGitHubWorkflowsAreValid(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	out, err := exec.CommandContext(t.Context(), tool(t, "actionlint"), files...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, file := range files {
		for line := range strings.Lines(read(t, file)) {
			if _, action, ok := strings.Cut(line, "uses: "); ok && !strings.HasPrefix(action, "./") {
				require.Regexp(t, `^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+\n$`, action, "a tag can be moved: %s", file)
			}
		}
	}
}
