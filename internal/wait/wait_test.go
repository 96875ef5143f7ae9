package wait_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

func TestForWaitsUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.True(t, wait.For(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.False(t, wait.For(ctx, time.Hour))
		require.Equal(t, time.Hour+time.Minute, time.Since(began))
		require.False(t, wait.For(ctx, 0))
	})
}

func TestForAllRunsAFewConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, seen := []string{"a", "b", "c", "d", "e"}, make([]string, 5)
		began := time.Now()
		wait.ForAll(all, 2, func(i int, of string) {
			time.Sleep(time.Minute) // time in the synctest bubble
			seen[i] = of
		})
		require.Equal(t, all, seen)
		require.Equal(t, 3*time.Minute, time.Since(began), "two concurrently")
	})
}
