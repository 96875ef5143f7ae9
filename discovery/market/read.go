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

// These are the times of a Reader.
const (
	readEvery = 2 * time.Second
	readFor   = 5 * time.Second
	// staleAfter is the age at which a market without a new write is no longer used.
	staleAfter = 3 * writeEvery
)

// ErrNone means that no market has been published yet.
var ErrNone = errors.New("no market has been published: does a worker run?")

// Reader keeps the market that was published last. Safe for concurrent use.
type Reader struct {
	store Store
	log   *slog.Logger

	mu    sync.Mutex
	last  Market
	since time.Time // when this process first saw last, by its own clock; zero before
}

// NewReader returns a Reader, which reads nothing before Run.
func NewReader(store Store, log *slog.Logger) *Reader { return &Reader{store: store, log: log} }

// Run reads until ctx ends.
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

// Read reads once.
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
