package client

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// described answers DescribeWorkflow, and nothing else.
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

// packed is a snapshot as an entity publishes it.
func packed(t *testing.T, snapshot any) *common.Payload {
	t.Helper()
	text, err := fleet.Encode(snapshot)
	require.NoError(t, err)
	payload, err := converter.GetDefaultDataConverter().ToPayload(text)
	require.NoError(t, err)
	return payload
}

// What a read that brings no snapshot means decides whether the group is started: see grpcserver's Refresh.
func TestReadTellsWhatIsMissing(t *testing.T) {
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
