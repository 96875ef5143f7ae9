package sqlite_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlite"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
)

func open(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "offers.db")) })
}

func record(t *testing.T, name string) store.Record {
	t.Helper()
	posted, err := api.Decode([]byte(`{"name":"` + name + `","credentials":{"secretRef":{"namespace":"ns","name":"x"}},"lendable":{"cpu":"1","memory":"1Gi","pods":"1"}}`))
	require.NoError(t, err)
	return store.Record{Offer: posted, Writer: "w"}
}

func TestOffersOutliveTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with ?odd#name%20.db")
	first, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	now := time.Now()
	_, err = first.Put(t.Context(), record(t, "a"), now)
	require.NoError(t, err)

	second := open(t, path) // as after kill -9: the first was never closed
	got, err := second.Get(t.Context(), "a", now)
	require.NoError(t, err)
	require.Equal(t, "a", got.Offer.Name)
	_, err = second.Put(t.Context(), record(t, "b"), now)
	require.NoError(t, err)
	list, err := first.List(t.Context(), "", 10, now)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.NoError(t, first.Close())

	info, err := os.Stat(path)
	require.NoError(t, err, "the name is taken literally")
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
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
	_, err = db.Exec("PRAGMA user_version = 99")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = sqlite.Open(t.Context(), future)
	require.ErrorContains(t, err, "its schema is version 99")
}

func TestAnEndedContextChangesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "offers.db"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Put(ctx, record(t, "a"), time.Now())
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Get(t.Context(), "a", time.Now())
	require.ErrorIs(t, err, store.ErrNotFound)
}
