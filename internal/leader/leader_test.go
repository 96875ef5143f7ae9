package leader_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/leader"
)

// The context of a leader ends. The leader finishes its last work, such as the withdrawal of a published offer, before
// the next leader begins. The next leader does not have to wait until the Lease expires.
func TestLeaderBeginsAfterItsPredecessorHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, log := fake.NewClientset(), slog.New(slog.DiscardHandler)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		began, ended := make(chan time.Time, 1), make(chan time.Time, 1)
		first, end := context.WithCancel(ctx)
		var both sync.WaitGroup
		both.Go(func() {
			leader.Run(first, client, "ns", "lease", log, func(ctx context.Context) {
				began <- time.Now()
				<-ctx.Done()
				<-time.After(5 * time.Second)
				ended <- time.Now()
			})
		})
		<-began
		both.Go(func() {
			leader.Run(ctx, client, "ns", "lease", log, func(ctx context.Context) {
				began <- time.Now()
				<-ctx.Done()
			})
		})
		<-time.After(time.Minute)
		require.Empty(t, began, "the first one leads")
		end()
		next, last := <-began, <-ended
		require.False(t, next.Before(last), "both work")
		require.Less(t, next.Sub(last), 5*time.Second)
		stop()
		both.Wait()
	})
}

// The work function of a leader returns although the process still leads. This process then does not compete for the
// Lease for a minute, so another process can lead.
func TestReturnedWorkLetsAnotherProcessLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, log := fake.NewClientset(), slog.New(slog.DiscardHandler)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		began := make(chan string, 10)
		var both sync.WaitGroup
		both.Go(func() {
			leader.Run(ctx, client, "ns", "lease", log, func(context.Context) { began <- "first" })
		})
		require.Equal(t, "first", <-began)
		both.Go(func() {
			leader.Run(ctx, client, "ns", "lease", log, func(ctx context.Context) {
				began <- "second"
				<-ctx.Done()
			})
		})
		<-time.After(30 * time.Second)
		require.Equal(t, "second", <-began)
		<-time.After(5 * time.Minute)
		require.Empty(t, began)
		stop()
		both.Wait()
	})
}

// The work function of a leader returns although the process still leads, and no other process competes. This process
// leads again after a minute.
func TestReturnedWorkIsCalledAgainAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		began := make(chan time.Time, 10)
		var running sync.WaitGroup
		running.Go(func() {
			leader.Run(ctx, fake.NewClientset(), "ns", "lease", slog.New(slog.DiscardHandler),
				func(context.Context) { began <- time.Now() })
		})
		first, second := <-began, <-began
		require.GreaterOrEqual(t, second.Sub(first), time.Minute)
		require.Less(t, second.Sub(first), 90*time.Second)
		stop()
		running.Wait()
	})
}
