package logonce_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
)

func TestExcessLinesOfASecondAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e logonce.EachSecond
		next := func() (int, bool) { return e.Next() }
		for range 10 {
			skipped, log := next()
			require.True(t, log, "the first ones")
			require.Zero(t, skipped)
		}
		for range 1000 {
			_, log := next()
			require.False(t, log)
		}
		pass(time.Second)
		skipped, log := next()
		require.True(t, log)
		require.Equal(t, 1000, skipped)
		pass(time.Minute)
		skipped, log = next()
		require.True(t, log)
		require.Zero(t, skipped, "each is counted once")
	})
}

// pass moves the test's clock forward by d.
func pass(d time.Duration) { <-time.After(d) }
