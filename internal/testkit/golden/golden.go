// Package golden compares what tests produce with files. Its flag -update writes the files instead; a package whose
// tests have golden files belongs into the Makefile's target update.
package golden

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Check compares a text with the file.
func Check(t testing.TB, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run make update")
	require.Equal(t, string(want), got, "run make update and read its diff")
}
