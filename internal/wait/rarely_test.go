package wait

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestHealthChecksShareOneCallASecond makes many concurrent health checks. They result in only one call per second.
func TestHealthChecksShareOneCallASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, wrong := 0, errors.New("away")
		check := Rarely(func(context.Context) error {
			looks++
			return wrong
		})
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { require.ErrorIs(t, check(t.Context()), wrong) })
		}
		all.Wait()
		require.Equal(t, 1, looks)
		wrong = nil
		<-time.After(remembered)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, check(gone), "a caller that has gone spoils no answer")
		require.Equal(t, 2, looks)
	})
}
