package storetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

// inTurn is a store.Store that sends the calls to its stores alternately.
type inTurn struct {
	servers []store.Store
	calls   atomic.Int64
}

func (s *inTurn) next() store.Store { return s.servers[int(s.calls.Add(1))%len(s.servers)] }

func (s *inTurn) Now(ctx context.Context) (time.Time, error) { return s.next().Now(ctx) }

func (s *inTurn) Begin(ctx context.Context, writer, provider string) (int64, error) {
	return s.next().Begin(ctx, writer, provider)
}

func (s *inTurn) Put(ctx context.Context, r store.Record, turn store.Turn, now time.Time) (store.Record, error) {
	return s.next().Put(ctx, r, turn, now)
}

func (s *inTurn) Get(ctx context.Context, name string, now time.Time) (store.Record, error) {
	return s.next().Get(ctx, name, now)
}

func (s *inTurn) List(ctx context.Context, q store.Query, now time.Time) ([]store.Record, error) {
	return s.next().List(ctx, q, now)
}

func (s *inTurn) Delete(ctx context.Context, name, writer string, turn store.Turn, now time.Time) error {
	return s.next().Delete(ctx, name, writer, turn, now)
}

func (s *inTurn) Sweep(ctx context.Context, now time.Time) (int, error) {
	return s.next().Sweep(ctx, now)
}
