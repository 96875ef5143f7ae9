// Package sqlstore implements store.Store in an SQL database. Packages store/sqlite and store/postgres open the
// database.
package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

// Store implements store.Store.
type Store struct {
	db      *sql.DB
	dialect Dialect
}

var _ store.Store = (*Store)(nil)

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Now implements store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if s.dialect.Now == "" {
		return time.Now(), nil
	}
	var nanoseconds int64
	if err := s.db.QueryRowContext(ctx, s.dialect.Now).Scan(&nanoseconds); err != nil {
		return time.Time{}, fmt.Errorf("read the time of the database: %w", err)
	}
	return time.Unix(0, nanoseconds), nil
}

// write runs the function `do` in a transaction. Transactions of the same writer run one after the other.
func (s *Store) write(ctx context.Context, writer string, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if s.dialect.Lock != "" {
		_, err = tx.ExecContext(ctx, s.dialect.Lock, writer)
	}
	if err == nil {
		err = do(tx)
	}
	if err != nil {
		if late := tx.Rollback(); late != nil && !errors.Is(late, sql.ErrTxDone) { // ErrTxDone: ctx has ended
			return errors.Join(err, late)
		}
		return err
	}
	return tx.Commit()
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// get returns the offer with this name, or store.ErrNotFound if the offer does not exist or has expired.
func get(ctx context.Context, from querier, name string, now time.Time) (record store.Record, err error) {
	var raw string
	err = from.QueryRowContext(ctx, "SELECT record FROM offers WHERE name = $1 AND expires > $2", name,
		now.UnixNano()).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return record, store.ErrNotFound
	}
	if err != nil {
		return record, err
	}
	return decode(raw)
}

// before returns the offer with this name, which the writer is about to replace or delete. It returns a zero record
// if the offer does not exist, and store.ErrOwned if the offer belongs to another writer.
func before(ctx context.Context, tx *sql.Tx, name, writer string, now time.Time) (store.Record, error) {
	found, err := get(ctx, tx, name, now)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Record{}, nil
	case err == nil && found.Writer != writer:
		return store.Record{}, store.ErrOwned
	}
	return found, err
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, record store.Record, turn store.Turn,
	now time.Time) (was store.Record, err error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return store.Record{}, fmt.Errorf("put offer %s: %w", record.Offer.Name, err)
	}
	expires := int64(math.MaxInt64)
	if record.Offer.Expires != nil {
		expires = record.Offer.Expires.UnixNano()
	}
	err = s.write(ctx, record.Writer, func(tx *sql.Tx) error {
		if err := useTurn(ctx, tx, record.Writer, turn); err != nil {
			return err
		}
		if was, err = before(ctx, tx, record.Offer.Name, record.Writer, now); err != nil {
			return err
		}
		if err := checkQuota(ctx, tx, record, len(raw), now); err != nil {
			return err
		}
		// Another writer may have written an offer with this name since the call of the function `before`. In that
		// case the statement changes no row.
		result, err := tx.ExecContext(ctx, `INSERT INTO offers (name, writer, expires, record, labels) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (name) DO UPDATE
			SET writer = excluded.writer, expires = excluded.expires, record = excluded.record, labels = excluded.labels
			WHERE offers.writer = excluded.writer OR offers.expires <= $6`,
			record.Offer.Name, record.Writer, expires, string(raw), searchable(record.Offer.Labels), now.UnixNano())
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, store.ErrOwned)
		}
		return nil
	})
	if err != nil {
		return store.Record{}, fmt.Errorf("put offer %s: %w", record.Offer.Name, err)
	}
	return was, nil
}

// checkQuota returns store.ErrFull when the offer and the writer's other offers together exceed the writer's quota.
func checkQuota(ctx context.Context, tx *sql.Tx, record store.Record, size int, now time.Time) error {
	var n, bytes int
	err := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(length(record)), 0) FROM offers
		WHERE writer = $1 AND expires > $2 AND name <> $3`, record.Writer, now.UnixNano(), record.Offer.Name).Scan(&n, &bytes)
	if err == nil && (n >= store.MaxPerWriter || bytes+size > store.MaxPerWriterBytes) {
		err = fmt.Errorf("%w: %s has %d other offers, with %d bytes in total", store.ErrFull, record.Writer, n, bytes)
	}
	return err
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, name string, now time.Time) (store.Record, error) {
	record, err := get(ctx, s.db, name, now)
	if err != nil {
		return store.Record{}, fmt.Errorf("get offer %s: %w", name, err)
	}
	return record, nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, q store.Query, now time.Time) ([]store.Record, error) {
	narrow, args := narrowed(q.Selector, q.After, now.UnixNano(), q.Limit)
	rows, err := s.db.QueryContext(ctx, "SELECT record FROM offers WHERE name > $1 AND expires > $2"+narrow+
		" ORDER BY name LIMIT $3", args...)
	if err != nil {
		return nil, fmt.Errorf("list offers: %w", err)
	}
	defer func() { _ = rows.Close() }() // Err reports the error
	var out []store.Record
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
	err := s.write(ctx, writer, func(tx *sql.Tx) error {
		if err := useTurn(ctx, tx, writer, turn); err != nil {
			return err
		}
		if _, err := before(ctx, tx, name, writer, now); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM offers WHERE name = $1 AND writer = $2", name, writer)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete offer %s: %w", name, err)
	}
	return nil
}

// Sweep implements store.Store.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	result, err := s.db.ExecContext(ctx, "DELETE FROM offers WHERE expires <= $1", now.UnixNano())
	if err != nil {
		return 0, fmt.Errorf("sweep offers: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("sweep offers: %w", err)
	}
	return int(n), nil
}

func decode(raw string) (record store.Record, err error) {
	if err := json.Unmarshal([]byte(raw), &record); err != nil {
		return store.Record{}, fmt.Errorf("read a stored offer: %w", err)
	}
	return record, nil
}
