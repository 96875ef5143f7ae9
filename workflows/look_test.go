package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// A group loses its history, and the booking on one of its Ready nodes cannot be read: that node is left to people, with
// the pods on it.
func TestNodeWithoutReadableBookingIsLeftAlone(t *testing.T) {
	s := newStage(t, workflows.NodeGroup, workflows.TypeNodeGroup)
	s.OnActivity(activities.NameRecoverGroup, mock.Anything, mock.Anything).Return([]backend.Found{{
		Attempt: backend.Attempt{Group: "standard", Instance: "standard-x-1", Number: 1, Provider: backend.Provider{ID: "milan"}},
		Slice:   true, Virtual: true, Marked: true, Node: true, Stamped: true, Ready: true,
	}}, nil)
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Hour)
	s.ExecuteWorkflow(workflows.NodeGroup, workflows.NodeGroupInput{Group: "standard"})
	require.NotContains(t, s.started, workflows.UndoID("standard-x-1", 1))
}

// A busy group continues as new more often than once a minute: it looks at what exists all the same.
func TestLooksAreNotPutOffByContinueAsNew(t *testing.T) {
	s := newStage(t, workflows.NodeGroup, workflows.TypeNodeGroup)
	s.OnActivity(activities.NameRecoverGroup, mock.Anything, mock.Anything).Return([]backend.Found{}, nil)
	s.RegisterDelayedCallback(func() {
		s.SetContinueAsNewSuggested(true)
		s.SignalWorkflow(workflows.SignalRetry, nil)
	}, 4*time.Minute)
	s.ExecuteWorkflow(workflows.NodeGroup, workflows.NodeGroupInput{Group: "standard"})
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, s.GetWorkflowError(), &again)
	var next workflows.NodeGroupInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &next))
	require.Equal(t, reviewAt.Add(10*time.Minute), next.State.NextLook.UTC(), "as it was, of a group without instances")

	s = newStage(t, workflows.NodeGroup, workflows.TypeNodeGroup)
	s.SetStartTime(reviewAt.Add(4 * time.Minute))
	var looked time.Time
	s.OnActivity(activities.NameRecoverGroup, mock.Anything, mock.Anything).Return(func(context.Context, string) ([]backend.Found, error) {
		looked = s.Now()
		return nil, nil
	})
	s.RegisterDelayedCallback(s.CancelWorkflow, 7*time.Minute)
	s.ExecuteWorkflow(workflows.NodeGroup, next)
	require.Equal(t, reviewAt.Add(10*time.Minute), looked.UTC())
}
