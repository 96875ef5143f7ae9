package workflows_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// A scale-out that was terminated between Discover and Select is started again in Selecting, without the shortlist: it
// looks again instead of finding that nothing fits.
func TestScaleOutStartedInSelectingLooksAgain(t *testing.T) {
	s := newStage(t, workflows.ScaleOut, workflows.TypeScaleOut)
	offered := []fleet.Candidate{{Offer: fleet.Offer{Name: "milan", Provider: "milan"}}}
	var from []fleet.Candidate
	s.RegisterActivityWithOptions(func(context.Context, activities.DiscoverInput) (activities.DiscoverOutput, error) {
		return activities.DiscoverOutput{Candidates: offered}, nil
	}, activity.RegisterOptions{Name: activities.NameDiscover})
	s.RegisterActivityWithOptions(func(_ context.Context, in activities.SelectInput) (activities.SelectOutput, error) {
		from = in.Found.Candidates
		return activities.SelectOutput{Failure: fleet.NewFailure(fleet.CodeNoOffer, "", "", "enough for this test")}, nil
	}, activity.RegisterOptions{Name: activities.NameSelect})
	s.ExecuteWorkflow(workflows.ScaleOut, workflows.DriveInput{Instance: reviewInstance("standard-x-1", fleet.Selecting)})
	require.NoError(t, s.GetWorkflowError())
	require.Equal(t, offered, from)
}
