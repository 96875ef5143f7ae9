package upgrade

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The name of a build is its version. With versioning it is also the build id of its workers.
const (
	oldBuild = "old"
	newBuild = "new"
)

// builds holds the paths of the binaries.
type builds struct{ older, newer string }

// versions reports whether the old build supports versioning.
func (b builds) versions(t *testing.T) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), b.older, "worker", "--help").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.Contains(string(out), "--deployment-name")
}

// build builds both binaries in a folder. The old binary is built from an earlier commit if possible.
func build(t *testing.T, dir string) builds {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..")
	b := builds{older: filepath.Join(dir, "liqo-autoscaler-old"), newer: filepath.Join(dir, "liqo-autoscaler-new")}
	compile(t, root, newBuild, b.newer)
	earlier, from := checkout(t, root, dir)
	if earlier == "" {
		earlier = root
	}
	compile(t, earlier, oldBuild, b.older)
	t.Log("the old build is", from)
	return b
}

// The function `same` makes the old binary from this build, with another version and therefore another build id.
func same(t *testing.T, dir string) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	path := filepath.Join(dir, "liqo-autoscaler-same")
	compile(t, filepath.Join(filepath.Dir(file), "..", ".."), oldBuild, path)
	return path
}

func compile(t *testing.T, root, version, path string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-X main.version="+version, "-o",
		path, "./cmd/liqo-autoscaler")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// checkout extracts the earlier commit. If this build has to replace the build of the earlier commit, the result path
// is "", and the result from is the reason.
func checkout(t *testing.T, root, dir string) (path, from string) {
	t.Helper()
	ref := os.Getenv("UPGRADE_FROM")
	if ref == "" {
		ref = "HEAD~1"
	}
	commit, err := git(t.Context(), root, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if err != nil {
		require.Empty(t, os.Getenv("UPGRADE_FROM"), "no such commit: %s", commit)
		return "", "this one: there is no " + ref + " here"
	}
	if _, err := git(t.Context(), root, "diff", "--quiet", commit, "--", "workflows/testdata/histories"); err != nil {
		require.Empty(t, os.Getenv("UPGRADE_FROM"), "the histories have been recorded again since "+commit)
		return "", "this one: the histories have been recorded again since " + ref
	}
	path = filepath.Join(dir, "earlier")
	require.NoError(t, os.MkdirAll(path, 0o755))
	archive := filepath.Join(dir, "earlier.tar")
	out, err := git(t.Context(), root, "archive", "--output", archive, commit)
	require.NoError(t, err, out)
	extracted, err := exec.CommandContext(t.Context(), "tar", "-x", "-f", archive, "-C", path).CombinedOutput()
	require.NoError(t, err, "%s", extracted)
	return path, ref + ", " + commit
}

func git(ctx context.Context, root string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
