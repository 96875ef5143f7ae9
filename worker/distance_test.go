package worker

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// A worker far from Temporal waits for more requests concurrently, up to a limit.
func TestDistantWorkerWaitsForMoreRequests(t *testing.T) {
	for roundTrip, want := range map[time.Duration]int{0: 4, time.Millisecond: 4, 25 * time.Millisecond: 8,
		100 * time.Millisecond: 20, 250 * time.Millisecond: 44, time.Second: 64, time.Hour: 64} {
		require.Equal(t, want, atDistance(roundTrip), "%s", roundTrip)
	}
}

// The shortest round trip shows the distance. A server that does not answer costs at most two seconds.
func TestShortestRoundTripIsTheDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []time.Duration{800 * time.Millisecond, 90 * time.Millisecond, 40 * time.Millisecond,
			300 * time.Millisecond, 50 * time.Millisecond}
		n := 0
		got, err := measureRoundTrip(t.Context(), func(ctx context.Context) error {
			n++
			wait.For(ctx, answers[n-1])
			return ctx.Err()
		})
		require.NoError(t, err)
		require.Equal(t, 40*time.Millisecond, got)

		began := time.Now()
		_, err = measureRoundTrip(t.Context(), func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, time.Since(began))

		_, err = measureRoundTrip(t.Context(), func(context.Context) error { return errors.New("refused") })
		require.EqualError(t, err, "measure the round trip to Temporal: refused")
	})
}
