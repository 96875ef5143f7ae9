package grpcserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// While Temporal does not answer, the server reads its groups at growing intervals, up to five seconds. After an answer
// it reads them every twenty seconds. The next outage starts at the shortest interval.
func TestIntervalsBetweenReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.down = true
		s := newServer(t, f, spec("cpu", 0, 5))
		ctx, cancel := context.WithCancel(t.Context())
		tries := make(chan time.Time, 100)
		done := make(chan struct{})
		go func() { s.KeepWarm(ctx, func() { tries <- time.Now() }); close(done) }()
		last := <-tries
		next := func() time.Duration {
			at := <-tries
			defer func() { last = at }()
			return at.Sub(last)
		}
		const ms = time.Millisecond
		outage := []time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 5000 * ms, 5000 * ms}
		for range 2 {
			for _, want := range outage {
				require.Equal(t, want, next())
			}
			f.set(func(f *fakeGroups) { f.down = false })
			require.Equal(t, 5*time.Second, next())
			require.Equal(t, 20*time.Second, next())
			f.set(func(f *fakeGroups) { f.down = true })
			require.Equal(t, 20*time.Second, next())
		}
		cancel()
		<-done
	})
}

// A server is fresh for a minute after its last successful read. It is alive while its loop runs. It is a standby when
// CA has not called it for two minutes.
func TestFreshAliveAndStandbyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		s := loaded(t, f, spec("cpu", 0, 5))
		pass(time.Minute - 1)
		require.True(t, s.Fresh())
		pass(1)
		require.False(t, s.Fresh())
		require.True(t, s.standby(), "CA has never called")
		_, err := s.Refresh(t.Context(), &protos.RefreshRequest{})
		require.NoError(t, err)
		require.False(t, s.standby())
		require.True(t, s.Fresh())

		f.set(func(f *fakeGroups) { f.hangs = "cpu" })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.KeepWarm(ctx, nil); close(done) }()
		synctest.Wait()
		require.NoError(t, s.Alive(), "it has begun")
		cancel()
		<-done
		s.beat()
		pass(75 * time.Second)
		require.NoError(t, s.Alive())
		pass(1)
		require.ErrorContains(t, s.Alive(), "has hung for 1m15s")
	})
}
