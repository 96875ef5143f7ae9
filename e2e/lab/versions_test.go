package lab

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func modules(t *testing.T) string {
	t.Helper()
	dir, err := sourceDir()
	require.NoError(t, err)
	return filepath.Join(dir, "modules")
}

func TestVersionsAreChosen(t *testing.T) {
	t.Setenv(EnvLiqo, "")
	t.Setenv(EnvKubernetes, "")
	v, err := choose(modules(t), "", "")
	require.NoError(t, err)
	require.Equal(t, versions{kubernetes: DefaultKubernetes, liqo: DefaultLiqo}, v)

	t.Setenv(EnvLiqo, "1.1")
	v, err = choose(modules(t), "v1.34", "")
	require.NoError(t, err)
	require.Equal(t, versions{kubernetes: "v1.34.4", liqo: "v1.1.2"}, v)
	require.True(t, oneSlice(v.liqo))

	v, err = choose(modules(t), "", "v1.2.0")
	require.NoError(t, err)
	require.Equal(t, "v1.2.0", v.liqo, "an option beats the environment")
	require.False(t, oneSlice(v.liqo))

	_, err = choose(modules(t), "", "v0.9")
	require.ErrorContains(t, err, "choose liqo v0.9: the lab has v1.1.2, v1.2.0")
}

func TestNewestPatchOfAMinorIsChosen(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"v1.9.9", "v1.10.2", "v1.10.10", "v1.1.1", "notes"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	for asked, want := range map[string]string{"v1.10": "v1.10.10", "1.10.2": "v1.10.2", "v1.1": "v1.1.1",
		"v1": "v1.10.10"} {
		got, err := pick(dir, "", asked)
		require.NoError(t, err)
		require.Equal(t, want, got, asked)
	}
}

// TestModulesRequireTheVersionInTheirName checks that each folder requires the version in its name. Otherwise the lab
// would build another version.
func TestModulesRequireTheVersionInTheirName(t *testing.T) {
	requires := map[string]string{"etcd": "go.etcd.io/etcd/server/v3", "kubernetes": "k8s.io/kubernetes",
		"liqo": "github.com/liqotech/liqo", "temporal": "go.temporal.io/server"}
	found, err := filepath.Glob(filepath.Join(modules(t), "*", "v*", "go.mod"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(found), 5)
	for _, path := range found {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		version := filepath.Base(filepath.Dir(path))
		module := requires[filepath.Base(filepath.Dir(filepath.Dir(path)))]
		require.Regexp(t, `(?m)^\s*(require )?`+regexp.QuoteMeta(module+" "+version)+`$`, string(text), path)
		require.FileExists(t, filepath.Join(filepath.Dir(path), "go.sum"))
	}
}

// TestDefaultFolderHasAStableName checks the name of the folder, because another name would cause a new build of
// everything.
func TestDefaultFolderHasAStableName(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	dir, err := versions{kubernetes: "v1.33.1", liqo: "v1.2.0"}.dir()
	require.NoError(t, err)
	require.Equal(t, "/cache/liqo-autoscaler/lab-kube-v1.33.1-liqo-v1.2.0-etcd-v3.5.21-temporal-v1.5.1", dir)
	dir, err = versions{kubernetes: "v1.33.1", liqo: "v1.2.0", source: "/liqo", digest: "0a1b"}.dir()
	require.NoError(t, err)
	require.Equal(t, "/cache/liqo-autoscaler/lab-kube-v1.33.1-liqo-v1.2.0-source-0a1b-etcd-v3.5.21-temporal-v1.5.1", dir)
}
