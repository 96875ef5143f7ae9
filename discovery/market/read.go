package market

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/told"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Times of a Reader.
const (
	readEvery = 2 * time.Second
	readFor   = 5 * time.Second
	// staleAfter is when a market that was not written again is not believed any more: three times writeEvery.
	staleAfter = 3 * writeEvery
)

// ErrNone says that nothing has been published yet.
var ErrNone = errors.New("no market has been published: does a worker run?")

// Reader keeps what was published last. Safe for concurrent use.
type Reader struct {
	store Store
	log   *slog.Logger

	mu    sync.Mutex
	last  Market
	since time.Time // by this process's clock: when last was first seen; zero before
}

// NewReader makes a Reader, which reads nothing before Run.
func NewReader(store Store, log *slog.Logger) *Reader { return &Reader{store: store, log: log} }

// Run reads until ctx ends.
func (r *Reader) Run(ctx context.Context) {
	var told told.Once
	for ok := true; ok; ok = wait.For(ctx, readEvery) {
		err := r.Read(ctx)
		if ctx.Err() != nil {
			return
		}
		if told.IsNew(err) {
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

// Current is the market as read last, and false when nobody keeps it up any more.
func (r *Reader) Current() (Market, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, !r.since.IsZero() && time.Since(r.since) < staleAfter
}
