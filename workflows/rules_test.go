package workflows

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	sdkactivity "go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// An entity that continues as new uses the rules of the build that runs it from then on.
func TestContinueAsNewUsesTheCurrentRules(t *testing.T) {
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.SetContinueAsNewSuggested(true)
	env.RegisterActivityWithOptions(func(context.Context, activities.Task) ([]fleet.Result, error) { return nil, nil },
		sdkactivity.RegisterOptions{Name: activities.NameInspect})
	env.ExecuteWorkflow(Provider, EntityInput{Name: "milan", Rules: CurrentRules - 1})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	var in EntityInput
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	require.Equal(t, EntityInput{Name: "milan", Rules: CurrentRules, State: in.State}, in)
	require.NotEmpty(t, in.State)
}
