// Package store is the port to the discovery server's database of offers. Package store/sqlite stores them in a file,
// for one server. Package store/postgres stores them in PostgreSQL, for several servers.
package store

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// These are the errors that callers can match with errors.Is.
var (
	// ErrNotFound means that no offer has that name, or that the offer has expired.
	ErrNotFound = errors.New("offer not found")
	// ErrOwned means that the offer with that name belongs to another writer.
	ErrOwned = errors.New("offer belongs to another writer")
	// ErrFull means that the writer has reached MaxPerWriter or MaxPerWriterBytes.
	ErrFull = errors.New("too many offers")
	// ErrSession means that the session is unknown, or is not the newest session of its agent.
	ErrSession = errors.New("session over")
	// ErrReplayed means that the session already has a write with this sequence number or a higher one.
	ErrReplayed = errors.New("write replayed")
)

// Turn orders the writes of an agent's session. Begin issues the Session, and Sequence increases from write to write.
// The zero Turn is for a write without a session.
type Turn struct{ Session, Sequence int64 }

// MaxPerWriter bounds the number of unexpired offers of one writer, and the number of its sessions.
const MaxPerWriter = 1000

// MaxPerWriterBytes bounds the total size of one writer's unexpired offers, as JSON, because all readers read them.
const MaxPerWriterBytes = 1 << 20

// Record is an offer as it is stored. Its JSON is on disk: fields may only be added. The server sets Offer.Expires;
// without it the record never expires.
type Record struct {
	Offer   api.Posted `json:"offer"`
	Writer  string     `json:"writer"`
	Updated time.Time  `json:"updated"`
}

// Query selects at most Limit offers with names after After, in byte order of the names. Selector is a hint: the result
// contains all offers that it matches, and may contain other offers.
type Query struct {
	After    string
	Limit    int
	Selector labels.Selector // nil: all
}

// Store stores offers by name. Callers pass the time that Now returns: an offer that has expired by that time counts as
// absent, and its name is free. Store is safe for concurrent use, also by several processes with one database. It does
// not keep references to arguments or results. A write is durable once its method has returned. All other errors are
// errors of the database; the write may then have taken effect or not.
type Store interface {
	// Now returns the time of the clock that all users of the database share.
	Now(ctx context.Context) (time.Time, error)
	// Begin issues a session to the agent of a provider. Its number is higher than the numbers of all earlier sessions of
	// its writer. It ends the agent's previous session, whose writes no longer take effect. Errors: ErrFull.
	Begin(ctx context.Context, writer, provider string) (session int64, err error)
	// Put creates or replaces the offer named record.Offer.Name. before is the replaced offer, zero for a new one. Errors:
	// ErrOwned, ErrFull, ErrSession, ErrReplayed.
	Put(ctx context.Context, record Record, turn Turn, now time.Time) (before Record, err error)
	// Get returns the offer with that name. Errors: ErrNotFound.
	Get(ctx context.Context, name string, now time.Time) (Record, error)
	// List returns the offers of the query.
	List(ctx context.Context, query Query, now time.Time) ([]Record, error)
	// Delete removes the writer's offer; removing an absent offer succeeds. Errors: ErrOwned, ErrSession, ErrReplayed.
	Delete(ctx context.Context, name, writer string, turn Turn, now time.Time) error
	// Sweep deletes expired offers and returns their number.
	Sweep(ctx context.Context, now time.Time) (int, error)
}
