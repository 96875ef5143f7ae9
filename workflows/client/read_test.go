package client

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// described answers only DescribeWorkflow.
type described struct {
	Temporal
	status enums.WorkflowExecutionStatus
	memo   map[string]*common.Payload
	err    error
}

func (d described) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	if d.err != nil {
		return nil, d.err
	}
	return &client.WorkflowExecutionDescription{WorkflowExecutionMetadata: client.WorkflowExecutionMetadata{
		Status: d.status, Memo: &common.Memo{Fields: d.memo},
	}}, nil
}

// packed encodes a snapshot as an entity publishes it.
func packed(t *testing.T, snapshot any) *common.Payload {
	t.Helper()
	payload, err := converter.GetDefaultDataConverter().ToPayload(snapshot)
	require.NoError(t, err)
	return payload
}

// A failed read of a group reports whether the group does not run or has not recovered yet. The gRPC server's Refresh
// starts the group only in the first case.
func TestFailedReadReportsItsKind(t *testing.T) {
	snapshot := packed(t, fleet.Snapshot{Group: "gpu", Epoch: "e"})
	const running = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	for name, c := range map[string]struct {
		described
		notRunning, notInitialised bool
	}{
		"never started": {described{err: serviceerror.NewNotFound("workflow not found")}, true, false},
		"terminated":    {described{status: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED}, true, false},
		"not recovered": {described{status: running}, false, true},
		"no answer":     {described{err: serviceerror.NewUnavailable("try again")}, false, false},
		"out of time":   {described{err: context.DeadlineExceeded}, false, false},
		"broken memo": {described{status: running, memo: map[string]*common.Payload{workflows.MemoSnapshot: {
			Metadata: snapshot.GetMetadata(), Data: []byte("{")}}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewGroups(c.described, "", "").Snapshot(t.Context(), "gpu")
			require.ErrorIs(t, err, fleet.ErrUnavailable)
			require.ErrorContains(t, err, "nodegroup/gpu")
			require.Equal(t, c.notRunning, strings.Contains(err.Error(), "nodegroup/gpu does not run"), "%v", err)
			require.Equal(t, c.notRunning, errors.Is(err, fleet.ErrNotRunning))
			require.Equal(t, c.notInitialised, fleet.IsRefused(err, fleet.RefusedNotInitialised))
		})
	}
	s, err := NewGroups(described{status: running, memo: map[string]*common.Payload{workflows.MemoSnapshot: snapshot}}, "",
		"").Snapshot(t.Context(), "gpu")
	require.NoError(t, err)
	require.Equal(t, "gpu", s.Group)
}

// A call may use the whole timeout of its caller, although the SDK would end the call after half of this time. When the
// caller gives up, the call ends with the caller's error.
func TestCallUsesTheWholeTimeoutOfItsCaller(t *testing.T) {
	var left time.Duration
	waits := make(chan struct{})
	answer := func(ctx context.Context, method string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker,
		_ ...grpc.CallOption) error {
		if strings.HasSuffix(method, "GetSystemInfo") {
			return nil
		}
		deadline, _ := ctx.Deadline()
		if left = time.Until(deadline); waits == nil {
			return status.Error(codes.Unimplemented, "enough is known")
		}
		close(waits)
		<-ctx.Done()
		return ctx.Err()
	}
	c, err := client.NewLazyClient(client.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{
			DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(answer)}}})
	require.NoError(t, err)
	defer c.Close()
	g, single := NewGroups(c, "", ""), NewSingle(c, "", "", false)
	for name, do := range map[string]func(ctx context.Context) error{
		"describe": func(ctx context.Context) error { _, err := g.Snapshot(ctx, "gpu"); return err },
		"list":     func(ctx context.Context) error { _, err := g.Running(ctx); return err },
		"signal":   func(ctx context.Context) error { return single.Signal(ctx, activities.Signal{ID: "a"}) },
		"holds":    func(ctx context.Context) error { return g.signalProvider(ctx, "milan", "holds", nil) },
		"start": func(ctx context.Context) error {
			_, err := single.Start(ctx, activities.Start{ID: "a", Type: "b", Queue: "c"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
			defer cancel()
			waits = nil
			_ = do(ctx)
			require.Greater(t, left, 6*time.Second)

			waits = make(chan struct{})
			ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			require.ErrorContains(t, do(ctx), "deadline exceeded")

			waits = make(chan struct{})
			ctx, cancel = context.WithCancel(t.Context())
			go func() { <-waits; cancel() }()
			require.ErrorContains(t, do(ctx), "canceled")
		})
	}
}
