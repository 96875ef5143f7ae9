package told_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/told"
)

func TestEachSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e told.EachSecond
		next := func() (int, bool) { return e.Next() }
		for range 10 {
			untold, tell := next()
			require.True(t, tell, "the first ones")
			require.Zero(t, untold)
		}
		for range 1000 {
			_, tell := next()
			require.False(t, tell)
		}
		pass(time.Second)
		untold, tell := next()
		require.True(t, tell)
		require.Equal(t, 1000, untold)
		pass(time.Minute)
		untold, tell = next()
		require.True(t, tell)
		require.Zero(t, untold, "each is counted once")
	})
}

// pass lets time pass on the test's clock.
func pass(d time.Duration) { <-time.After(d) }
