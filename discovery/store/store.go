// Package store is the interface to the discovery server's database of offers. Package store/sqlite stores the offers
// in a file, for one server. Package store/postgres stores them in PostgreSQL, for several servers.
package store

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// Callers can match these errors with errors.Is.
var (
	// ErrNotFound means that no offer has the requested name, or that the offer has expired.
	ErrNotFound = errors.New("offer not found")
	// ErrOwned means that the offer with the requested name belongs to another writer.
	ErrOwned = errors.New("offer belongs to another writer")
	// ErrFull means that the writer has reached MaxPerWriter or MaxPerWriterBytes.
	ErrFull = errors.New("too many offers")
	// ErrSession means that the session is unknown, or that its agent has started a newer session.
	ErrSession = errors.New("session over")
	// ErrReplayed means that the session already has a write with this sequence number or a higher one.
	ErrReplayed = errors.New("write replayed")
)

// Turn identifies one write of an agent's session. Session is a result of Store.Begin, and Sequence increases from
// write to write. The zero Turn is for a write without a session.
type Turn struct{ Session, Sequence int64 }

// MaxPerWriter bounds the number of a writer's offers that have not expired, and the number of the writer's sessions.
const MaxPerWriter = 1000

// MaxPerWriterBytes bounds the total size, as JSON, of a writer's offers that have not expired, because every reader
// reads them.
const MaxPerWriterBytes = 1 << 20

// Record is an offer in its stored form. Records are stored as JSON. Therefore fields may be added, but existing
// fields must not change. The server sets Offer.Expires; a record without Expires never expires.
type Record struct {
	Offer   api.Posted `json:"offer"`
	Writer  string     `json:"writer"`
	Updated time.Time  `json:"updated"`
}

// Query selects at most Limit offers whose names follow After in byte order. Of these, the result contains all offers
// that Selector matches, but it may also contain other offers.
type Query struct {
	After    string
	Limit    int
	Selector labels.Selector // nil selects all offers
}

// Store stores offers by name. The parameter `now` of a method is a result of Now. An offer that has expired at this
// time is treated as if it did not exist, and another writer may use its name. Store is safe for concurrent use, also
// by several processes with one database. It does not keep references to arguments or results. A write is durable
// when its method has returned. The comment of each method lists the errors of the method. Any other error is an
// error of the database; a write may have taken effect nevertheless.
type Store interface {
	// Now returns the time of the clock that all users of the database share.
	Now(ctx context.Context) (time.Time, error)
	// Begin starts a session of a provider's agent and returns its number. The number is higher than the numbers of
	// all earlier sessions of the same writer. Begin ends the agent's previous session: writes of that session no
	// longer take effect. Errors: ErrFull.
	Begin(ctx context.Context, writer, provider string) (session int64, err error)
	// Put creates or replaces the offer with the name record.Offer.Name. The result `before` is the replaced offer,
	// or zero for a new offer. Errors: ErrOwned, ErrFull, ErrSession, ErrReplayed.
	Put(ctx context.Context, record Record, turn Turn, now time.Time) (before Record, err error)
	// Get returns the offer with this name. Errors: ErrNotFound.
	Get(ctx context.Context, name string, now time.Time) (Record, error)
	// List returns the offers that the query selects, ordered by name.
	List(ctx context.Context, query Query, now time.Time) ([]Record, error)
	// Delete removes the writer's offer with this name. It also succeeds if the offer does not exist. Errors:
	// ErrOwned, ErrSession, ErrReplayed.
	Delete(ctx context.Context, name, writer string, turn Turn, now time.Time) error
	// Sweep deletes expired offers and returns their number.
	Sweep(ctx context.Context, now time.Time) (int, error)
}
