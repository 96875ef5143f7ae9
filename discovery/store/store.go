// Package store is the port to where the discovery server keeps its offers; store/sqlite keeps them in a file.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// What callers can meet; match with errors.Is.
var (
	// ErrNotFound: there is no offer of that name, or it has expired.
	ErrNotFound = errors.New("offer not found")
	// ErrOwned: the offer of that name is another writer's.
	ErrOwned = errors.New("offer belongs to another writer")
	// ErrFull: the writer has MaxPerWriter offers.
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

// Record is an offer as it is kept. Its JSON is on disk: fields are only ever added. Offer.Expires is set by the
// server; without it the record never ends.
type Record struct {
	Offer   api.Posted `json:"offer"`
	Writer  string     `json:"writer"`
	Updated time.Time  `json:"updated"`
}

// Store keeps offers by name. Every method takes the time: what has expired by then is as good as absent, and its name
// is free. Safe for concurrent use. What goes in and comes out is not shared with the caller. Nothing is lost once a
// method has returned.
type Store interface {
	// Begin issues a session to the agent of a provider, higher than all before. The agent's session before it is over: no
	// write of it takes effect any longer. Errors: ErrFull.
	Begin(ctx context.Context, writer, provider string) (session int64, err error)
	// Put creates or replaces the offer named record.Offer.Name. Errors: ErrOwned, ErrFull, ErrSession, ErrReplayed.
	Put(ctx context.Context, record Record, turn Turn, now time.Time) (created bool, err error)
	// Get errors: ErrNotFound.
	Get(ctx context.Context, name string, now time.Time) (Record, error)
	// List returns at most limit offers with names after the given one, in name order.
	List(ctx context.Context, after string, limit int, now time.Time) ([]Record, error)
	// Delete removes the writer's offer; removing an absent one is success. Errors: ErrOwned, ErrSession, ErrReplayed.
	Delete(ctx context.Context, name, writer string, turn Turn, now time.Time) error
	// Sweep frees what expired offers take and returns their number.
	Sweep(ctx context.Context, now time.Time) (int, error)
}
