// Package golden compares the output of tests with files. With the flag -update, it writes the files before it
// compares. The target update of the Makefile must contain each package whose tests have golden files.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Check fails the test unless the content of the file equals got.
func Check(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run make update")
	require.Equal(t, string(want), got, "run make update and read its diff")
}
