package fleet_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

func TestDocumentedMachinesAreTheTables(t *testing.T) {
	const page = "../../docs/machine.md"
	got := fleet.Diagrams()
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(got), 0o644))
	}
	want, err := os.ReadFile(page)
	require.NoError(t, err, "run make update")
	require.Equal(t, string(want), got, "run make update")
}
