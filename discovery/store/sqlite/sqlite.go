// Package sqlite opens a store.Store in one SQLite file, with a driver in pure Go. Two processes may use the file at
// the same time. If one writes, a write of the other waits for at most five seconds.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite" // the database/sql driver "sqlite"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/sqlstore"
)

// Open opens the file. If the file does not exist, Open creates it with access only for its owner. The caller must
// close the store.
func Open(ctx context.Context, path string) (*sqlstore.Store, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open offers database: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open offers database: %w", err)
	}
	pragmas := url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"},
		"_txlock": {"immediate"}, // lock at the start, so that transactions never deadlock
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path),
		RawQuery: pragmas.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open offers database: %w", err)
	}
	db.SetMaxOpenConns(1)
	s, err := sqlstore.Open(ctx, db, sqlstore.Dialect{Migrations: "sqlite", Name: goose.DialectSQLite3})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open offers database %s: %w", path, err), db.Close())
	}
	return s, nil
}
