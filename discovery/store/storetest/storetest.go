// Package storetest opens stores for tests, and contains the test that every implementation of store.Store must pass.
package storetest

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlite"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlstore"
)

// empty returns the content of the file of an empty store. All tests start with a copy of this file, because the
// migration of a new file takes long.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "storetest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "offers.db")
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// New opens an empty store in a folder that is removed when the test ends.
func New(t testing.TB) *sqlstore.Store {
	t.Helper()
	content, err := empty()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "offers.db")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	s, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// At returns a store that is the same as s but has the clock now.
func At(s store.Store, now func() time.Time) store.Store { return clocked{s, now} }

type clocked struct {
	store.Store
	now func() time.Time
}

func (c clocked) Now(context.Context) (time.Time, error) { return c.now(), nil }
