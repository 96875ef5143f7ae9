package market

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These constants are the interval and the time limits of a Reader.
const (
	readEvery = 2 * time.Second
	readFor   = 5 * time.Second
	// staleAfter is the time after which a market is no longer used if no newer market was written.
	staleAfter = 3 * writeEvery
)

// ErrNone means that no market has been published.
var ErrNone = errors.New("no market has been published: does a worker run?")

// Reader reads the published market repeatedly and keeps the newest one. It is safe for concurrent use.
type Reader struct {
	store Store
	log   *slog.Logger

	mu    sync.Mutex
	last  Market
	since time.Time // first read of this market by this process, by its own clock; zero before
}

// NewReader returns a Reader. The Reader reads nothing before Run or Read is called.
func NewReader(store Store, log *slog.Logger) *Reader { return &Reader{store: store, log: log} }

// Run reads the market repeatedly until ctx ends.
func (r *Reader) Run(ctx context.Context) {
	var logged logonce.LastError
	for ok := true; ok; ok = wait.For(ctx, readEvery) {
		err := r.Read(ctx)
		if ctx.Err() != nil {
			return
		}
		if logged.IsNew(err) {
			r.log.Warn("the market cannot be read: each node group appears to have room for one more node", "error", err)
		}
	}
}

// Read reads the market once. It keeps the last market if the read fails.
func (r *Reader) Read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	m, err := r.store.Load(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !m.At.Equal(r.last.At) || r.since.IsZero() {
		r.last, r.since = m, time.Now()
	}
	return nil
}

// Current returns the market that was read last, and false when it is stale or nothing was read.
func (r *Reader) Current() (Market, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, !r.since.IsZero() && time.Since(r.since) < staleAfter
}
