// Package sqlite is the durable store.Store: one SQLite file, pure Go. A second process may open the file at the same
// time; writes then wait for each other up to five seconds.
package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"time"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

// schema makes each version of the one before, the first of an empty file; it is only ever added to. expires is in Unix
// nanoseconds; record is the JSON of store.Record.
var schema = []string{`
CREATE TABLE offers (
	name    TEXT PRIMARY KEY,
	writer  TEXT NOT NULL,
	expires INTEGER NOT NULL,
	record  TEXT NOT NULL
) WITHOUT ROWID, STRICT;
CREATE INDEX offers_writer ON offers (writer, expires);
CREATE INDEX offers_expires ON offers (expires);
PRAGMA user_version = 1;`, `
CREATE TABLE sessions (
	session  INTEGER PRIMARY KEY AUTOINCREMENT,
	writer   TEXT NOT NULL,
	provider TEXT NOT NULL,
	sequence INTEGER NOT NULL,
	UNIQUE (writer, provider)
) STRICT;
PRAGMA user_version = 2;`}

// Store is a store.Store in a file.
type Store struct{ db *sql.DB }

var _ store.Store = (*Store)(nil)

// Open opens the file, which is made, readable by its owner only, when it is not there. Close it.
func Open(ctx context.Context, path string) (*Store, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open offers database: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open offers database: %w", err)
	}
	pragmas := url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"},
		"_txlock": {"immediate"}, // a transaction takes the write lock at its start, so two never wait for each other
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path),
		RawQuery: pragmas.Encode()}).String())
	if err != nil {
		return nil, fmt.Errorf("open offers database: %w", err)
	}
	db.SetMaxOpenConns(1)
	s := &Store{db: db}
	if err := s.migrate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open offers database %s: %w", path, err), db.Close())
	}
	return s, nil
}

// Close releases the file.
func (s *Store) Close() error { return s.db.Close() }

func (s *Store) migrate(ctx context.Context) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		var found int
		if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil {
			return err
		}
		if found < 0 || found > len(schema) {
			return fmt.Errorf("its schema is version %d, this program knows up to %d; use a newer program", found, len(schema))
		}
		for _, step := range schema[found:] {
			if _, err := tx.ExecContext(ctx, step); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Store) write(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		if late := tx.Rollback(); late != nil && !errors.Is(late, sql.ErrTxDone) { // an ended context has rolled back already
			return errors.Join(err, late)
		}
		return err
	}
	return tx.Commit()
}

// owner is the writer of the live offer of that name; "" when there is none.
func owner(ctx context.Context, tx *sql.Tx, name string, now time.Time) (string, error) {
	var writer string
	err := tx.QueryRowContext(ctx, "SELECT writer FROM offers WHERE name = ? AND expires > ?", name,
		now.UnixNano()).Scan(&writer)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return writer, err
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, record store.Record, turn store.Turn,
	now time.Time) (created bool, err error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return false, fmt.Errorf("put offer %s: %w", record.Offer.Name, err)
	}
	expires := int64(math.MaxInt64)
	if record.Offer.Expires != nil {
		expires = record.Offer.Expires.UnixNano()
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		if err := take(ctx, tx, record.Writer, turn); err != nil {
			return err
		}
		was, err := owner(ctx, tx, record.Offer.Name, now)
		switch {
		case err != nil:
			return err
		case was != "" && was != record.Writer:
			return store.ErrOwned
		}
		if created = was == ""; created {
			var n int
			row := tx.QueryRowContext(ctx, "SELECT count(*) FROM offers WHERE writer = ? AND expires > ?", record.Writer,
				now.UnixNano())
			if err := row.Scan(&n); err != nil {
				return err
			}
			if n >= store.MaxPerWriter {
				return fmt.Errorf("%w: %s has %d", store.ErrFull, record.Writer, n)
			}
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO offers (name, writer, expires, record) VALUES (?, ?, ?, ?)
			ON CONFLICT (name) DO UPDATE SET writer = excluded.writer, expires = excluded.expires, record = excluded.record`,
			record.Offer.Name, record.Writer, expires, string(raw))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("put offer %s: %w", record.Offer.Name, err)
	}
	return created, nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, name string, now time.Time) (store.Record, error) {
	var raw string
	err := s.db.QueryRowContext(ctx, "SELECT record FROM offers WHERE name = ? AND expires > ?", name,
		now.UnixNano()).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err != nil {
		return store.Record{}, fmt.Errorf("get offer %s: %w", name, err)
	}
	return decode(raw)
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, after string, limit int, now time.Time) (out []store.Record, err error) {
	rows, err := s.db.QueryContext(ctx, "SELECT record FROM offers WHERE name > ? AND expires > ? ORDER BY name LIMIT ?",
		after, now.UnixNano(), limit)
	if err != nil {
		return nil, fmt.Errorf("list offers: %w", err)
	}
	defer func() {
		if late := rows.Close(); err == nil && late != nil {
			out, err = nil, fmt.Errorf("list offers: %w", late)
		}
	}()
	for rows.Next() {
		var raw string
		if err := rows.Scan(&raw); err != nil {
			return nil, fmt.Errorf("list offers: %w", err)
		}
		record, err := decode(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, record)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list offers: %w", err)
	}
	return out, nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, name, writer string, turn store.Turn, now time.Time) error {
	err := s.write(ctx, func(tx *sql.Tx) error {
		if err := take(ctx, tx, writer, turn); err != nil {
			return err
		}
		was, err := owner(ctx, tx, name, now)
		switch {
		case err != nil:
			return err
		case was != "" && was != writer:
			return store.ErrOwned
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM offers WHERE name = ?", name)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete offer %s: %w", name, err)
	}
	return nil
}

// Sweep implements store.Store.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	result, err := s.db.ExecContext(ctx, "DELETE FROM offers WHERE expires <= ?", now.UnixNano())
	if err != nil {
		return 0, fmt.Errorf("sweep offers: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("sweep offers: %w", err)
	}
	return int(n), nil
}

func decode(raw string) (store.Record, error) {
	var record store.Record
	if err := json.Unmarshal([]byte(raw), &record); err != nil {
		return store.Record{}, fmt.Errorf("read a stored offer: %w", err)
	}
	return record, nil
}
