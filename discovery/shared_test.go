package discovery_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// asked is a catalog whose answers take a second. It counts its calls.
type asked struct {
	mu    sync.Mutex
	times int
	err   error
}

func (a *asked) Offers(ctx context.Context) ([]fleet.Offer, []discovery.Problem, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times++
	return []fleet.Offer{offer("milan")}, []discovery.Problem{{Offer: "rome", Message: "broken"}}, a.err
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.times
}

func (a *asked) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// Concurrent callers share one call of the catalog.
func TestConcurrentCallersShareACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &asked{}
		shared := discovery.Share(c)
		burst := func(catalog discovery.Catalog) {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					offers, problems, err := catalog.Offers(t.Context())
					if err != nil || len(offers) != 1 || len(problems) != 1 {
						t.Errorf("got %v, %v, %v", offers, problems, err)
						return
					}
					delete(offers[0].Lendable, "cpu") // changes only this caller's copy
					problems[0].Message = ""
				})
			}
			all.Wait()
		}
		burst(shared.Within(discovery.Recent))
		require.Equal(t, 1, c.count(), "they share one answer")
		time.Sleep(discovery.Recent - 2*time.Second) // time in the bubble
		burst(shared.Within(discovery.Recent))
		require.Equal(t, 1, c.count())
		offers, problems, err := shared.Within(discovery.Recent).Offers(t.Context())
		require.NoError(t, err)
		require.Equal(t, offer("milan").Lendable, offers[0].Lendable)
		require.Equal(t, "broken", problems[0].Message)

		burst(shared.Within(0))
		require.Equal(t, 2, c.count(), "who wants it new gets it new")
		burst(shared.Within(discovery.Recent))
		require.Equal(t, 2, c.count(), "and all others have use of it")
		time.Sleep(discovery.Recent)
		burst(shared.Within(discovery.Recent))
		require.Equal(t, 3, c.count())
	})
}

func TestCallersShareAFailedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &asked{}
		c.fail(errors.New("no such file"))
		catalog := discovery.Share(c).Within(discovery.Recent)
		for range 10 {
			_, _, err := catalog.Offers(t.Context())
			require.EqualError(t, err, "no such file")
		}
		require.Equal(t, 1, c.count(), "a failing source is not called more often")
		c.fail(nil)
		time.Sleep(discovery.Recent)
		_, _, err := catalog.Offers(t.Context())
		require.NoError(t, err)
	})
}

// A caller that gives up does not end the shared call for the other callers.
func TestSharedCallOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &asked{}
		catalog := discovery.Share(c).Within(discovery.Recent)
		impatient, cancel := context.WithCancel(t.Context())
		gaveUp, answered := make(chan error, 1), make(chan error, 1)
		ask := func(ctx context.Context, done chan<- error) {
			_, _, err := catalog.Offers(ctx)
			done <- err
		}
		go ask(impatient, gaveUp)
		synctest.Wait()
		go ask(t.Context(), answered)
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-gaveUp, context.Canceled)
		require.NoError(t, <-answered)
		require.Equal(t, 1, c.count())
	})
}
