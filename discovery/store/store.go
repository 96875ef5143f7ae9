// Package store is the port to where the discovery server keeps its offers. store/sqlite keeps them in a file, for one
// server; store/postgres in PostgreSQL, for several.
package store

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// What callers can meet; match with errors.Is.
var (
	// ErrNotFound: there is no offer of that name, or it has expired.
	ErrNotFound = errors.New("offer not found")
	// ErrOwned: the offer of that name is another writer's.
	ErrOwned = errors.New("offer belongs to another writer")
	// ErrFull: the writer has MaxPerWriter offers, or MaxPerWriterBytes of them.
	ErrFull = errors.New("too many offers")
	// ErrSession: the session is not the newest of its agent, or it is not known here.
	ErrSession = errors.New("session over")
	// ErrReplayed: the session has written with this sequence, or a later one, already.
	ErrReplayed = errors.New("write replayed")
)

// Turn is the place of a write among those of an agent's session; the zero Turn is for a write without session. A
// session is issued by Begin; Sequence rises from write to write.
type Turn struct{ Session, Sequence int64 }

// MaxPerWriter bounds the live offers of one writer, and its sessions.
const MaxPerWriter = 1000

// MaxPerWriterBytes bounds the live offers of one writer together, as JSON: what one writer puts, all readers read.
const MaxPerWriterBytes = 1 << 20

// Record is an offer as it is kept. Its JSON is on disk: fields are only ever added. Offer.Expires is set by the
// server; without it the record never ends.
type Record struct {
	Offer   api.Posted `json:"offer"`
	Writer  string     `json:"writer"`
	Updated time.Time  `json:"updated"`
}

// Query asks for at most Limit offers with names after After, in the order of their bytes. With a Selector, what it
// does not match may be left out; what it matches is not.
type Query struct {
	After    string
	Limit    int
	Selector labels.Selector // nil: all
}

// Store keeps offers by name. Methods take the time, which Now tells: what has expired by then is as good as absent,
// and its name is free. Safe for concurrent use, also by several processes with one database. What goes in and comes
// out is not shared with the caller. Nothing is lost once a method has returned. Errors that are none of the above are
// the database's; then it is not known whether a write took effect.
type Store interface {
	// Now is the time by the clock that all who share the database go by.
	Now(ctx context.Context) (time.Time, error)
	// Begin issues a session to the agent of a provider, higher than all of its writer before. The agent's session before
	// it is over: no write of it takes effect any longer. Errors: ErrFull.
	Begin(ctx context.Context, writer, provider string) (session int64, err error)
	// Put creates or replaces the offer named record.Offer.Name. before is what it replaced, zero when it created one.
	// Errors: ErrOwned, ErrFull, ErrSession, ErrReplayed.
	Put(ctx context.Context, record Record, turn Turn, now time.Time) (before Record, err error)
	// Get errors: ErrNotFound.
	Get(ctx context.Context, name string, now time.Time) (Record, error)
	// List answers the query.
	List(ctx context.Context, query Query, now time.Time) ([]Record, error)
	// Delete removes the writer's offer; removing an absent one is success. Errors: ErrOwned, ErrSession, ErrReplayed.
	Delete(ctx context.Context, name, writer string, turn Turn, now time.Time) error
	// Sweep frees what expired offers take and returns their number.
	Sweep(ctx context.Context, now time.Time) (int, error)
}
