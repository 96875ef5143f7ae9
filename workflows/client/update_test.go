package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// refuser fails the first tasks of an entity with the error that Temporal reports. It records the received operations.
type refuser struct {
	Temporal
	fails  int
	err    error
	at     time.Time // the entity's clock in its answers
	sent   []fleet.Operation
	traces []string
	calls  [][]fleet.Call
	refuse []map[int]fleet.Refusal // by answer
}

func (r *refuser) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle,
	error) {
	request := o.Args[0].(fleet.Request)
	r.sent, r.traces = append(r.sent, request.Operation), append(r.traces, request.Trace)
	r.calls = append(r.calls, request.Calls)
	if len(r.sent) <= r.fails {
		return nil, r.err
	}
	a := answered{at: r.at}
	if len(r.refuse) > 0 {
		a.refused, r.refuse = r.refuse[0], r.refuse[1:]
	}
	return a, nil
}

type answered struct {
	client.WorkflowUpdateHandle
	at      time.Time
	refused map[int]fleet.Refusal
}

func (a answered) Get(_ context.Context, out any) error {
	*out.(*fleet.Receipt) = fleet.Receipt{Position: fleet.Position{Epoch: "t0", Revision: 7}, At: a.at, Refused: a.refused}
	return nil
}

// Temporal aborts an update when its workflow task fails. The update has changed nothing, and Temporal retries the
// task, so the client sends the update again. If CA received the error of the aborted update, it would back off from
// the group for minutes.
func TestUpdateIsRepeatedAfterAFailedTask(t *testing.T) {
	r := &refuser{fails: 2, err: serviceerror.NewWorkflowNotReady("unexpected workflow task failure")}
	c, err := NewGroups(r, "", "").Grow(t.Context(), "gpu", 1, 0, fleet.Position{})
	require.NoError(t, err)
	require.Equal(t, fleet.Position{Epoch: "t0", Revision: 7}, c)
	require.Equal(t, []fleet.Operation{r.sent[0], r.sent[0], r.sent[0]}, r.sent, "one operation, however often it is sent")
}

func TestFailingTaskIsReportedAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refuser{fails: 1 << 30, err: serviceerror.NewWorkflowNotReady("workflow task in failed state")}
		ctx, cancel := context.WithTimeout(t.Context(), 20*retryInterval)
		defer cancel()
		_, err := NewGroups(r, "", "").Grow(ctx, "gpu", 1, 0, fleet.Position{})
		require.ErrorIs(t, err, fleet.ErrUnavailable)
		require.NotErrorIs(t, err, fleet.ErrOutcomeUnknown)
		require.ErrorContains(t, err, "nodegroup/gpu: its workflow task fails (unavailable), look at it in the Temporal UI")
		require.Greater(t, len(r.sent), 1)
	})
}

// The gRPC server must distinguish a group that does not run from a group of size zero. For a group that does not run,
// the error reports this fact.
func TestUpdateReportsAGroupThatDoesNotRun(t *testing.T) {
	r := &refuser{fails: 1, err: serviceerror.NewNotFound("workflow not found")}
	_, err := NewGroups(r, "", "").Shrink(t.Context(), "gpu", 1, fleet.Position{})
	require.ErrorContains(t, err, "shrink: nodegroup/gpu does not run")
	require.ErrorIs(t, err, fleet.ErrNotRunning)
	require.ErrorIs(t, err, fleet.ErrUnavailable)
}

// The client does not repeat an update with an unknown outcome.
func TestUpdateWithAnUnknownOutcomeIsNotRepeated(t *testing.T) {
	r := &refuser{fails: 1, err: context.DeadlineExceeded}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := NewGroups(r, "", "").Grow(ctx, "gpu", 1, 0, fleet.Position{})
	require.ErrorIs(t, err, fleet.ErrOutcomeUnknown)
	require.False(t, errors.Is(err, fleet.ErrUnavailable))
	require.Len(t, r.sent, 1)
}
