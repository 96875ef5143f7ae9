package postgres

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// A server is killed and started again. Data that was committed before is still there.
func TestCommittedDataSurvivesAKill(t *testing.T) {
	testkit.Slow(t) // the fast tests need only Go, gcc, git and make
	s := New(t)
	s.CreateDatabase(t, "kept")
	s.Query(t, "kept", "create table t as select 7 as n")
	s.Kill()
	s.Start(t)
	require.Equal(t, "7", s.Query(t, "kept", "select n from t"))
}

func TestPostgresIsFound(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	_, err := find(dir)
	require.EqualError(t, err, "these tests need PostgreSQL: run apt-get install postgresql")
	for _, version := range []string{"9", "15", "16"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, version, "bin"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, version, "bin", "initdb"), nil, 0o600))
	}
	bin, err := find(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "16", "bin"), bin)
}
