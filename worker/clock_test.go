package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker"
)

// skewed returns a client for a worker. In Temporal's answers, it makes the scheduled times of activities older by
// the duration `ahead`, as if the worker's clock were ahead.
func skewed(t *testing.T, ahead time.Duration) client.Client {
	t.Helper()
	older := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if p, ok := reply.(*workflowservice.PollActivityTaskQueueResponse); ok && p.ScheduledTime != nil {
			p.ScheduledTime = timestamppb.New(p.ScheduledTime.AsTime().Add(-ahead))
		}
		return err
	}
	c, err := client.Dial(client.Options{HostPort: devServer, Logger: quiet(), ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(older)}}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// A worker's clock is an hour ahead of Temporal's clock, or an hour behind it. The worker still makes nodes and finds a
// dead provider.
func TestWorkerWithAWrongClockWorks(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newHubScene(t, 2, unready(time.Second)).work(func(o *worker.Options) { o.Temporal = skewed(t, ahead) })
			s.grow(2)
			ready := s.allIn(fleet.Ready, 2)
			require.Len(t, s.on(0, ready), 2)
			s.observe()
			s.knobs(0, sim.Knobs{Unreachable: true})
			s.until("no Node is ready", func(snap fleet.Snapshot) bool { return countNotReady(snap) == 2 })
			s.rounds("one is lost", func() bool { return s.snapshot().Target == 1 })
		})
	}
}
