package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFileIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "groups.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	one := "nodeGroups: [{id: a, max: 1, shape: {cpu: 1, memory: 1Gi, pods: 1}}]"
	two := "nodeGroups: [{id: a, max: 2, shape: {cpu: 1, memory: 1Gi, pods: 1}}]"
	write(one)
	f, cfg, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, 1, cfg.NodeGroups[0].Max)
	first := f.Hash()

	_, changed, err := f.Changed()
	require.NoError(t, err)
	require.False(t, changed)

	write(two)
	cfg, changed, err = f.Changed()
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, 2, cfg.NodeGroups[0].Max)
	require.NotEqual(t, first, f.Hash())
	second := f.Hash()
	_, changed, _ = f.Changed()
	require.False(t, changed, "reported once")

	write("nodeGroups: [{id: a, max: none}]")
	for range 2 { // the same error until the file changes
		_, changed, err = f.Changed()
		require.ErrorContains(t, err, "nodeGroups[0].max: got \"none\", want a whole number")
		require.False(t, changed)
	}
	require.Equal(t, second, f.Hash(), "the good version stays in force")

	write(two)
	_, changed, err = f.Changed()
	require.NoError(t, err, "back to the version in force")
	require.False(t, changed)

	write("hub: elsewhere\n" + two)
	_, changed, err = f.Changed()
	require.ErrorContains(t, err, `hub: was "default" when this server started and is "elsewhere" now`)
	require.False(t, changed)

	require.NoError(t, os.Remove(path))
	_, changed, err = f.Changed()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.False(t, changed)
	write(one)
	_, changed, err = f.Changed()
	require.NoError(t, err)
	require.True(t, changed)
}
