package workflows

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// The ids of all workflows of a hub can be derived from the id of any workflow.
func TestIDsShareTheHubsPrefix(t *testing.T) {
	for own, want := range map[string]string{
		NodeGroupID("standard"):                   "peering/milan",
		Hub("").ID(ProviderID("milan")):           "peering/milan",
		Hub("default").ID(ProviderID("milan")):    "peering/milan",
		Hub("edge").ID(ProviderID("milan")):       "edge/peering/milan",
		Hub("edge").ID(UndoID("standard-x-1", 2)): "edge/peering/milan",
		"an id that a person chose 1":             "peering/milan",
	} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: own})
		env.ExecuteWorkflow(func(ctx workflow.Context) (string, error) { return inHub(ctx, PeeringID("milan")), nil })
		var got string
		require.NoError(t, env.GetWorkflowResult(&got))
		require.Equal(t, want, got, own)
	}
	require.Equal(t, "liqo-autoscaler", Hub("").TaskQueue(""))
	require.Equal(t, "liqo-autoscaler", Hub("default").TaskQueue(""))
	require.Equal(t, "liqo-autoscaler-edge", Hub("edge").TaskQueue(""))
	require.Equal(t, "mine", Hub("default").TaskQueue("mine"))
	require.Equal(t, "mine-edge", Hub("edge").TaskQueue("mine"))
}

// A scale-out has an execution timeout, because its group may have forgotten it. A scale-in has no timeout.
func TestScaleInHasNoTimeout(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	for kind, want := range map[fleet.DriverKind]time.Duration{fleet.ScaleOut: forgottenAfter, fleet.ScaleIn: 0} {
		env := suite.NewTestWorkflowEnvironment()
		env.ExecuteWorkflow(func(ctx workflow.Context) (time.Duration, error) {
			return (&nodeGroup{ctx: ctx}).driver(kind, &fleet.DriverInput{}).Bound, nil
		})
		var got time.Duration
		require.NoError(t, env.GetWorkflowResult(&got))
		require.Equal(t, want, got, kind)
	}
}
