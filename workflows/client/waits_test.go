package client

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// underWay returns the pending activities of workflows, by workflow id; a workflow without an entry is unknown.
type underWay struct {
	Temporal
	pending map[string][]*workflow.PendingActivityInfo
}

func (u underWay) DescribeWorkflowExecution(_ context.Context, id,
	_ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	pending, ok := u.pending[id]
	if !ok {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: pending}, nil
}

func step(t *testing.T, name string, beat *activities.Beat, before string) []*workflow.PendingActivityInfo {
	t.Helper()
	a := &workflow.PendingActivityInfo{ActivityType: &common.ActivityType{Name: name},
		LastFailure: &failure.Failure{Message: before}}
	if beat != nil {
		var err error
		a.HeartbeatDetails, err = converter.GetDefaultDataConverter().ToPayloads(*beat)
		require.NoError(t, err)
	}
	return []*workflow.PendingActivityInfo{a}
}

func TestWaits(t *testing.T) {
	const instance = "a-t0-1"
	beat := &activities.Beat{Stage: "ready", Message: "the Node is not Ready"}
	for name, c := range map[string]struct {
		phase   fleet.Phase
		pending map[string][]*workflow.PendingActivityInfo
		want    Waiting
		gone    bool
	}{
		"joins": {
			fleet.Peering, map[string][]*workflow.PendingActivityInfo{"edge/scale-out/a-t0-1": step(t, "Join", beat, "")},
			Waiting{Step: "Join", Stage: "ready", Message: "the Node is not Ready"}, false,
		},
		"drains after a failure": {
			fleet.Draining, map[string][]*workflow.PendingActivityInfo{"edge/scale-in/a-t0-1": step(t, "Drain", beat,
				"no answer")},
			Waiting{Step: "Drain", Stage: "ready", Message: "the Node is not Ready; before: no answer"}, false,
		},
		"the failure says the same": {
			fleet.Draining, map[string][]*workflow.PendingActivityInfo{"edge/scale-in/a-t0-1": step(t, "Drain", beat,
				"so: "+beat.Message)},
			Waiting{Step: "Drain", Stage: "ready", Message: "the Node is not Ready"}, false,
		},
		"has not begun": {
			fleet.Discovering, map[string][]*workflow.PendingActivityInfo{"edge/scale-out/a-t0-1": step(t, "Discover", nil, "")},
			Waiting{Step: "Discover"}, false,
		},
		"waits for a peering": {
			fleet.Peering, map[string][]*workflow.PendingActivityInfo{"edge/scale-out/a-t0-1": nil, "edge/peering/milan": step(t,
				"Establish", beat, "")},
			Waiting{Step: "Establish", Stage: "ready", Message: "the Node is not Ready"}, false,
		},
		"waits for the removal of the previous peering": {
			fleet.Peering, map[string][]*workflow.PendingActivityInfo{"edge/scale-out/a-t0-1": nil,
				"edge/unpeering/milan": step(t, "RemovePeering", beat, "")},
			Waiting{Step: "RemovePeering", Stage: "the removal of the previous peering: ready",
				Message: "the Node is not Ready"}, false,
		},
		"waits for an answer": {
			fleet.Peering, map[string][]*workflow.PendingActivityInfo{"edge/scale-out/a-t0-1": nil}, Waiting{}, false,
		},
		"has not said why": {
			fleet.Peering, map[string][]*workflow.PendingActivityInfo{"edge/scale-out/a-t0-1": step(t, "Join",
				&activities.Beat{Stage: "ready"}, "no answer")},
			Waiting{Step: "Join", Stage: "ready", Message: "before: no answer"}, false,
		},
		"its clock stands": {
			fleet.Draining, map[string][]*workflow.PendingActivityInfo{"edge/scale-in/a-t0-1": step(t, "Drain",
				&activities.Beat{Stage: "drain", Message: "2 pods", PausedBecause: "we do not answer"}, "")},
			Waiting{Step: "Drain", Stage: "drain", Message: "its budget is paused: we do not answer; 2 pods"}, false,
		},
		"the other one has not begun": {
			fleet.Draining, map[string][]*workflow.PendingActivityInfo{"edge/scale-in/a-t0-1": append(step(t, "Drain", nil, ""),
				step(t, "Report", beat, "")...)},
			Waiting{Step: "Report", Stage: "ready", Message: "the Node is not Ready"}, false,
		},
		"its heartbeat is none": {
			fleet.Draining, map[string][]*workflow.PendingActivityInfo{"edge/scale-in/a-t0-1": {{
				ActivityType:     &common.ActivityType{Name: "Drain"},
				HeartbeatDetails: &common.Payloads{Payloads: []*common.Payload{{Data: []byte("{")}}}}}},
			Waiting{Step: "Drain"}, true,
		},
		"without a driver": {fleet.Peering, nil, Waiting{}, true},
		"is at rest":       {fleet.Ready, nil, Waiting{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := fleet.InstanceView{Name: instance, Phase: c.phase, Provider: "milan"}
			got, err := NewGroups(underWay{pending: c.pending}, "edge", "").Waits(t.Context(), i)
			require.Equal(t, c.gone, err != nil, "%v", err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestWaitingAsText(t *testing.T) {
	require.Equal(t, "ready: not yet", Waiting{Step: "Join", Stage: "ready", Message: "not yet"}.String())
	require.Equal(t, "ready", Waiting{Step: "Join", Stage: "ready"}.String())
	require.Empty(t, Waiting{Step: "Discover"}.String())
}

// A failed read of a peering is reported, except when the peering's workflow does not run.
func TestFailedReadOfAPeeringIsReported(t *testing.T) {
	i := fleet.InstanceView{Name: "a-t0-1", Phase: fleet.Peering, Provider: "milan"}
	_, err := NewGroups(unread{known: "scale-out/a-t0-1"}, "", "").Waits(t.Context(), i)
	require.ErrorContains(t, err, "peering/milan")
	i.Provider = ""
	_, err = NewGroups(unread{known: "scale-out/a-t0-1"}, "", "").Waits(t.Context(), i)
	require.NoError(t, err, "no peering is read")
}

// unread is a fake Temporal with one workflow. It returns an error for any other workflow.
type unread struct {
	Temporal
	known string
}

func (u unread) DescribeWorkflowExecution(_ context.Context, id,
	_ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if id == u.known {
		return &workflowservice.DescribeWorkflowExecutionResponse{}, nil
	}
	return nil, errors.New("no answer")
}
