package workflows

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkactivity "go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
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

// A scale-out has an end, for when its group has forgotten it. A scale-in goes on for as long as it takes.
func TestScaleInHasNoEnd(t *testing.T) {
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

// What seldom changes is published when it has changed, the first day with costs too.
func TestDaysArePublishedWhenOneIsOver(t *testing.T) {
	g := &nodeGroup{ledger: fleet.NewLedger("standard", time.Now())}
	publishes := func() bool {
		memo, _ := g.snapshot(time.Now())
		_, has := memo[MemoDays]
		return has
	}
	require.False(t, publishes())
	for _, day := range []string{"2026-11-10", "2026-11-11"} {
		g.ledger.CostDays = append(g.ledger.CostDays, money.CostDay{Date: day})
		require.True(t, publishes(), day)
		require.False(t, publishes(), day)
	}
}

// Two rounds are judged together when one follows the other, and not with too much time, or a failed round, between
// them.
func TestRoundsInARow(t *testing.T) {
	for age, follows := range map[time.Duration]bool{time.Minute: true, roundAge: true, roundAge + time.Second: false} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		began := env.Now().Add(-age)
		env.SetLastCompletionResult(activities.Round{Number: 7, Began: began, Outlook: comparison.Outlook{At: began}})
		var in activities.Round
		env.RegisterActivityWithOptions(func(_ context.Context, r activities.Round) (activities.Round, error) {
			in = r
			return r, nil
		}, sdkactivity.RegisterOptions{Name: activities.NameCompare})
		env.ExecuteWorkflow(Compare)
		require.NoError(t, env.GetWorkflowError())
		require.Equal(t, follows, in.Number == 8, age)
		require.Greater(t, in.Number, int64(7), age)
		require.Equal(t, follows, in.Before != nil, age)
	}
}

// A schedule that somebody has made anew counts from anew: its rounds come after all that entities have heard of, and
// one after the other.
func TestRoundsOfANewScheduleAreLaterOnes(t *testing.T) {
	var last activities.Round
	rounds := func(n int) (numbers []int64) {
		for range n {
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			if env.SetStartTime(last.Began.Add(time.Minute)); last.Number > 0 {
				env.SetLastCompletionResult(last)
			}
			env.RegisterActivityWithOptions(func(_ context.Context, r activities.Round) (activities.Round, error) {
				last, numbers = r, append(numbers, r.Number)
				return r, nil
			}, sdkactivity.RegisterOptions{Name: activities.NameCompare})
			env.ExecuteWorkflow(Compare)
			require.NoError(t, env.GetWorkflowError())
		}
		return numbers
	}
	last.Began = time.Now()
	before := rounds(3)
	last.Number = 0
	after := rounds(2)
	require.Greater(t, after[0], before[2]+1)
	require.Equal(t, after[0]+1, after[1])
}

// A round that could not compare fails, so that the next one knows that it is not the one after it.
func TestRoundThatFails(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterActivityWithOptions(func(context.Context, activities.Round) (activities.Round, error) {
		return activities.Round{}, temporal.NewNonRetryableApplicationError("no list", "", nil)
	}, sdkactivity.RegisterOptions{Name: activities.NameCompare})
	env.ExecuteWorkflow(Compare)
	require.ErrorContains(t, env.GetWorkflowError(), "no list")
}

// When instances are lost before the next minute, another round follows in time: its result counts, if it has one.
func TestAnotherRoundWhenItIsDue(t *testing.T) {
	for name, second := range map[string]error{"done": nil, "failed": errors.New("no list")} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		began := env.Now()
		var rounds []activities.Round
		env.RegisterActivityWithOptions(func(_ context.Context, r activities.Round) (activities.Round, error) {
			r.Outlook.At, r.Due = r.Began, r.Began.Add(20*time.Second) // due again and again
			if len(rounds) > 0 && second != nil {
				return r, second
			}
			rounds = append(rounds, r)
			return r, nil
		}, sdkactivity.RegisterOptions{Name: activities.NameCompare})
		env.SetWorkflowRunTimeout(CompareBound)
		env.ExecuteWorkflow(Compare)
		var out activities.Round
		require.NoError(t, env.GetWorkflowResult(&out), name)
		require.Equal(t, rounds[len(rounds)-1].Number, out.Number, name)
		if second != nil {
			require.Len(t, rounds, 1, name)
			continue
		}
		require.Len(t, rounds, 2, "one is enough")
		require.Equal(t, rounds[0].Number+1, rounds[1].Number)
		require.Equal(t, rounds[0].Outlook.At.UTC(), rounds[1].Before.At.UTC())
		require.WithinDuration(t, began.Add(20*time.Second), rounds[1].Began, time.Second)
	}
}

// This cluster is cut off when no provider answers, and nothing else does; whoever cannot look takes it for cut off.
func TestSilenceOfAllIsIsolationWhenNothingElseAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		access  fleet.Access
		answers bool
		err     error
		want    bool
	}{
		"nothing answers":                {fleet.AccessSilent, false, nil, true},
		"something answers":              {fleet.AccessSilent, true, nil, false},
		"nobody can say":                 {fleet.AccessSilent, true, errors.New("no worker"), true},
		"the provider answers":           {fleet.AccessGranted, false, nil, false},
		"the provider answers and is no": {fleet.AccessRefused, false, nil, false},
	} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.RegisterActivityWithOptions(func(context.Context, fleet.Provider) (comparison.Evidence, error) {
			return comparison.Evidence{Access: c.access}, nil
		}, sdkactivity.RegisterOptions{Name: activities.NameObserve})
		env.RegisterActivityWithOptions(func(context.Context, []string) (bool, error) { return c.answers, c.err },
			sdkactivity.RegisterOptions{Name: activities.NameWitness})
		env.ExecuteWorkflow(func(ctx workflow.Context) (bool, error) {
			return observe(ctx, []fleet.Provider{{ID: "milan"}}).Isolated, nil
		})
		var got bool
		require.NoError(t, env.GetWorkflowResult(&got))
		require.Equal(t, c.want, got, name)
	}
}
