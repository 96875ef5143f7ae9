package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/journal"
)

// written creates the log of one worker.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "worker.log")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func all(journal.Entry) bool { return true }

func TestEntriesOfTwoWorkersAreReadInTheOrderOfTheirTimes(t *testing.T) {
	first := written(t, `{"time":"2026-11-10T10:00:01.5Z","instance":"a-1","phase":"Peering"}
{"time":"2026-11-10T10:00:03Z","instance":"a-1","phase":"Joining"}
`)
	second := written(t, `{"time":"2026-11-10T10:00:02Z","instance":"a-1","phase":"Discovering"}
`)
	entries, err := journal.Read([]string{first, second}, all)
	require.NoError(t, err)
	var phases []string
	for _, e := range entries {
		phases = append(phases, e.Phase)
	}
	require.Equal(t, []string{"Peering", "Discovering", "Joining"}, phases)
}

func TestLineWithoutAPhaseIsNoEntry(t *testing.T) {
	log := written(t, `goroutine 1 [running]:
{"msg":"Activity error.","Attempt":7}
{"msg":"instance","instance":"a-1","Attempt":7,"attempt":2,"provider":"milan","from":"Peering","event":"refused","phase":"Discovering","failure":"cancelled"}
{"msg":"instance","phase":"Rea`)
	entries, err := journal.Read([]string{log}, all)
	require.NoError(t, err)
	require.Equal(t, []journal.Entry{{Message: "instance", Instance: "a-1", Attempt: 2, Provider: "milan",
		From: "Peering", Event: "refused", Phase: "Discovering", Failure: "cancelled"}}, entries)
	entries, err = journal.Read([]string{log}, func(journal.Entry) bool { return false })
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestMissingLogIsAnError(t *testing.T) {
	_, err := journal.Read([]string{written(t, ""), filepath.Join(t.TempDir(), "second-worker.log")}, all)
	require.ErrorIs(t, err, os.ErrNotExist)
}
