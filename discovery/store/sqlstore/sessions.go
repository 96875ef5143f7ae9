package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

// Begin implements store.Store.
func (s *Store) Begin(ctx context.Context, writer, provider string) (session int64, err error) {
	err = s.write(ctx, writer, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE writer = $1 AND provider = $2", writer, provider)
		if err != nil {
			return err
		}
		var n int
		if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sessions WHERE writer = $1", writer).Scan(&n); err != nil {
			return err
		}
		if n >= store.MaxPerWriter {
			return fmt.Errorf("%w: %s has %d sessions", store.ErrFull, writer, n)
		}
		return tx.QueryRowContext(ctx,
			"INSERT INTO sessions (writer, provider, sequence) VALUES ($1, $2, 0) RETURNING session", writer,
			provider).Scan(&session)
	})
	if err != nil {
		return 0, fmt.Errorf("begin session of %s: %w", provider, err)
	}
	return session, nil
}

// useTurn marks the turn as used. It does this in the transaction of the write, so that a failed write does not use
// the turn. It returns store.ErrSession or store.ErrReplayed for an invalid turn.
func useTurn(ctx context.Context, tx *sql.Tx, writer string, turn store.Turn) error {
	if turn == (store.Turn{}) {
		return nil
	}
	var last int64
	err := tx.QueryRowContext(ctx, "SELECT sequence FROM sessions WHERE session = $1 AND writer = $2", turn.Session,
		writer).Scan(&last)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%w: %d", store.ErrSession, turn.Session)
	case err != nil:
		return err
	case turn.Sequence <= last:
		return fmt.Errorf("%w: %d of session %d", store.ErrReplayed, turn.Sequence, turn.Session)
	}
	_, err = tx.ExecContext(ctx, "UPDATE sessions SET sequence = $1 WHERE session = $2", turn.Sequence, turn.Session)
	return err
}
