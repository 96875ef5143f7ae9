package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlite"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlstore"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
)

func open(t *testing.T, path string) *sqlstore.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func record(t *testing.T, name string) store.Record {
	t.Helper()
	posted, err := api.Decode([]byte(`{"name":"` + name +
		`","credentials":{"secretRef":{"namespace":"ns","name":"x"}},"lendable":{"cpu":"1","memory":"1Gi","pods":"1"}}`))
	require.NoError(t, err)
	return store.Record{Offer: posted, Writer: "w"}
}

func TestContract(t *testing.T) {
	storetest.Contract(t, func(t *testing.T) (first, second store.Store) {
		path := filepath.Join(t.TempDir(), "offers.db")
		return open(t, path), open(t, path)
	})
}

const envPath = "SQLITE_TEST_PATH"

// A process that has written an offer is killed before it closes its file. The offer is in the file afterwards.
func TestOffersOutliveTheProcess(t *testing.T) {
	if path := os.Getenv(envPath); path != "" {
		_, err := open(t, path).Put(t.Context(), record(t, "a"), store.Turn{}, time.Now())
		require.NoError(t, err)
		fmt.Println("put")
		select {}
	}
	path := filepath.Join(t.TempDir(), "with ?odd#name%20.db")
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), envPath+"="+path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "put\n", line)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())

	got, err := open(t, path).Get(t.Context(), "a", time.Now())
	require.NoError(t, err)
	require.Equal(t, "a", got.Offer.Name)
	info, err := os.Stat(path)
	require.NoError(t, err, "the name is taken literally")
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestTwoProcessesShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offers.db")
	first, second := open(t, path), open(t, path)
	now := time.Now()
	_, err := first.Put(t.Context(), record(t, "a"), store.Turn{}, now)
	require.NoError(t, err)
	_, err = second.Put(t.Context(), record(t, "b"), store.Turn{}, now)
	require.NoError(t, err)
	for _, s := range []*sqlstore.Store{first, second} {
		list, err := s.List(t.Context(), store.Query{Limit: 10}, now)
		require.NoError(t, err)
		require.Len(t, list, 2)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := sqlite.Open(t.Context(), filepath.Join(dir, "none", "offers.db"))
	require.ErrorIs(t, err, os.ErrNotExist)

	garbage := filepath.Join(dir, "garbage.db")
	require.NoError(t, os.WriteFile(garbage, []byte("this is no database, and it is long enough to be looked at"), 0o600))
	_, err = sqlite.Open(t.Context(), garbage)
	require.ErrorContains(t, err, "not a database")

	future := filepath.Join(dir, "future.db")
	db, err := sql.Open("sqlite", future)
	require.NoError(t, err)
	require.NoError(t, open(t, future).Close())
	_, err = db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = sqlite.Open(t.Context(), future)
	require.ErrorContains(t, err, "its schema has version 99")
}

func TestAnEndedContextChangesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "offers.db"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Put(ctx, record(t, "a"), store.Turn{}, time.Now())
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Get(t.Context(), "a", time.Now())
	require.ErrorIs(t, err, store.ErrNotFound)
}

// A file with the first version of the schema keeps its offers and is migrated to the current schema.
func TestOldFileIsMigrated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "offers.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.ExecContext(t.Context(), `CREATE TABLE offers (name TEXT PRIMARY KEY, writer TEXT NOT NULL,
		expires INTEGER NOT NULL, record TEXT NOT NULL) WITHOUT ROWID, STRICT;
		CREATE INDEX offers_writer ON offers (writer, expires); CREATE INDEX offers_expires ON offers (expires);
		INSERT INTO offers VALUES ('a', 'w', 9000000000000000000, '{"offer":{"name":"a"},"writer":"w"}');
		PRAGMA user_version = 1;`)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	s := open(t, path)
	got, err := s.Get(t.Context(), "a", time.Now())
	require.NoError(t, err)
	require.Equal(t, "w", got.Writer)
	first, err := s.Begin(t.Context(), "w", "milan")
	require.NoError(t, err)
	again, err := open(t, path).Begin(t.Context(), "w", "milan")
	require.NoError(t, err)
	require.Greater(t, again, first)
}
