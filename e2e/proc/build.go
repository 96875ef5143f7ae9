package proc

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Root returns the folder of the main module.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Build builds the program liqo-autoscaler from a folder that contains the repository, and returns the path of the
// binary. The end of the test removes the binary.
func Build(t testing.TB, folder string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "liqo-autoscaler")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", binary, "./cmd/liqo-autoscaler")
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return binary
}
