package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

// Whoever finds a workflow by its id finds the same hub's others by theirs.
func TestIDsWithinAHub(t *testing.T) {
	for own, want := range map[string]string{
		NodeGroupID("standard"):                              "peering/milan",
		Hub("").ID(ProviderID("milan")):                      "peering/milan",
		Hub("default").ID(ProviderID("milan")):               "peering/milan",
		Hub("edge").ID(ProviderID("milan")):                  "edge/peering/milan",
		Hub("edge").ID(UndoID("standard-x-1", 2)):            "edge/peering/milan",
		"a name that somebody gave who started it by hand 1": "peering/milan",
	} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: own})
		env.ExecuteWorkflow(func(ctx workflow.Context) (string, error) { return here(ctx, PeeringID("milan")), nil })
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
