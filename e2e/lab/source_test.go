package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The lab builds Liqo from a folder with Liqo's source. When a file that is built changes, the lab uses another
// folder for the binaries. It takes no binary from another source.
func TestEachLiqoSourceHasItsOwnBinaries(t *testing.T) {
	tree := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(tree, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	t.Setenv(EnvLiqo, "")
	t.Setenv(EnvKubernetes, "")
	t.Setenv(EnvLiqoSource, tree)
	digest := func() string {
		v, err := choose(modules(t), "", "")
		require.NoError(t, err)
		require.Equal(t, tree, v.source)
		require.Equal(t, DefaultLiqo, v.liqo)
		for _, p := range parts(v) {
			require.Equal(t, p.into == "liqo", p.tree == tree, "%v", p.names)
			require.False(t, p.tree != "" && p.borrow(t.TempDir(), p.names[0]))
		}
		return v.digest
	}
	_, err := choose(modules(t), "", "")
	require.ErrorContains(t, err, "must be a folder with Liqo's source: open "+tree)
	write("go.mod", "module github.com/liqotech/another\n")
	_, err = choose(modules(t), "", "")
	require.ErrorContains(t, err, "go.mod does not declare github.com/liqotech/liqo")

	write("go.mod", "module github.com/liqotech/liqo\n\ngo 1.25\n")
	write("cmd/webhook/main.go", "package main\n")
	first := digest()
	write("docs/index.md", "a document")
	require.Equal(t, first, digest(), "a document is not built")
	write("cmd/webhook/main.go", "package main // changed\n")
	changed := digest()
	require.NotEqual(t, first, changed)
	require.NoError(t, os.Rename(filepath.Join(tree, "cmd", "webhook"), filepath.Join(tree, "cmd", "hook")))
	require.NotEqual(t, changed, digest())
	write("cmd/webhook/main.go", "package main\n")
	require.NoError(t, os.RemoveAll(filepath.Join(tree, "cmd", "hook")))
	require.Equal(t, first, digest())
}
