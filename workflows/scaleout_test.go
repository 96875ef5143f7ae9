package workflows_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// scaleOut runs one to its end, whose offers are selected and joined as told, and returns the last view that was told.
func scaleOut(t *testing.T, choose func(activities.SelectInput) activities.SelectOutput,
	join func(activities.JoinInput) error) (last fleet.View) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(5 * time.Minute)
	env.SetWorkerOptions(sdkworker.Options{DeadlockDetectionTimeout: time.Minute})
	var mu sync.Mutex
	for name, stub := range map[string]any{
		activities.NameDiscover: func(context.Context, activities.DiscoverInput) (activities.DiscoverOutput, error) {
			return activities.DiscoverOutput{}, nil
		},
		activities.NameSelect: func(_ context.Context, in activities.SelectInput) (activities.SelectOutput, error) {
			mu.Lock()
			defer mu.Unlock()
			return choose(in), nil
		},
		activities.NameJoin: func(_ context.Context, in activities.JoinInput) error {
			mu.Lock()
			defer mu.Unlock()
			return join(in)
		},
		activities.NameTell: func(_ context.Context, in activities.TellInput) error {
			mu.Lock()
			defer mu.Unlock()
			if in.View != nil {
				last = *in.View
			}
			return nil
		},
	} {
		env.RegisterActivityWithOptions(stub, activity.RegisterOptions{Name: name})
	}
	spec := fleet.GroupSpec{ID: "standard"}
	instance := fleet.NewInstance("standard-e-1", &spec, env.Now())
	// The clock runs as ours does while an activity runs: long enough, so that a slow machine has chosen before.
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(workflows.SignalAnswer,
			fleet.Answer{Key: fleet.ObjectName(instance.Name, 1), State: fleet.HoldGranted, From: "milan"})
	}, 5*time.Minute)
	env.ExecuteWorkflow(workflows.ScaleOut, fleet.DriverInput{Instance: instance, Spec: spec})
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
	mu.Lock()
	defer mu.Unlock()
	return last
}

var milan = activities.SelectOutput{Offer: &fleet.Offer{Name: "milan", Provider: "milan", Class: "gold"}}

// What is asked of a provider is of the class of its offer. When whoever decides there has no room, that is what the
// instance fails with, if nobody else offers anything.
func TestClassIsAskedAndMayHaveNoRoom(t *testing.T) {
	var asked string
	last := scaleOut(t, func(in activities.SelectInput) activities.SelectOutput {
		if len(in.Refused) > 0 {
			return activities.SelectOutput{Failure: fleet.NewFailure(fleet.CodeNoOffer, "", "", "nobody else")}
		}
		return milan
	}, func(in activities.JoinInput) error {
		asked = fmt.Sprint(in.Node.Attempt.Provider.ID, " ", in.Node.Class)
		f := fleet.NewFailure(fleet.CodeNoCapacity, "milan", "resources", "cpu 1 of 2")
		return temporal.NewNonRetryableApplicationError(f.Message, string(f.Code), nil, f)
	})
	require.Equal(t, "milan gold", asked)
	require.Equal(t, fleet.Failed, last.Phase)
	require.Equal(t, fleet.CodeNoCapacity, last.Failure.Code)
	require.Equal(t, "cpu 1 of 2; then nobody else", last.Failure.Message)
	require.Len(t, last.Left, 1, "what the attempt made is to be undone")
}

// An offer that is full now may soon have room: the instance waits for it, and does not fail.
func TestScaleOutWaitsForRoom(t *testing.T) {
	looks, joined := 0, false
	scaleOut(t, func(activities.SelectInput) activities.SelectOutput {
		if looks++; looks < 3 {
			return activities.SelectOutput{Failure: fleet.NewFailure(fleet.CodeNoCapacity, "", "", "milan is full"),
				Decision: choice.Decision{Full: true}}
		}
		return milan
	}, func(activities.JoinInput) error {
		joined = true
		return nil
	})
	require.Equal(t, 3, looks)
	require.True(t, joined)
}
