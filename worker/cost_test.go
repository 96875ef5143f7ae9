package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// Each node costs the price of its offer, also after Temporal has lost the group. Spending limits apply to booked
// nodes, and to nodes that have chosen an offer. The first provider can have four nodes at the price 1, the second
// four nodes at the price 2.
func TestCostsAndLimitsOfRealWorkflows(t *testing.T) {
	t.Parallel()
	hard := 4.0
	s := newScene(t, 2, func(g *fleet.GroupSpec) {
		g.Spending = &money.Spending{Hourly: money.SpendingLimit{Hard: &hard}}
	}).work()
	grow := func(priceCap float64) error {
		_, err := s.groups.Grow(s.ctx, s.spec.ID, 1, priceCap, fleet.Position{})
		return err
	}
	require.NoError(t, grow(1.5))
	ready := s.allIn(fleet.Ready, 1)
	require.Equal(t, money.Of(1), ready.Cost.Providers[s.providers[0]].Rate)
	require.Zero(t, ready.Cost.Reserved)
	err := grow(3.1)
	require.True(t, fleet.IsRefused(err, fleet.RefusedSpending), "%v", err)

	require.NoError(t, grow(0.5))
	snap := s.until("one finds only offers that cost too much", func(snap fleet.Snapshot) bool {
		return len(snap.Instances) == 2 && snap.Instances[1].Phase == fleet.Failed
	})
	require.Equal(t, fleet.CodeSpending, snap.Instances[1].Failure.Code)
	require.Contains(t, snap.Instances[1].Failure.Message, "a node costs 1 USD an hour there, and spending allows 0.5")

	require.NoError(t, s.temporal.TerminateWorkflow(s.ctx, workflows.NodeGroupID(s.spec.ID), "", "its database was lost"))
	again := s.configure()
	require.NotEqual(t, ready.Epoch, again.Epoch)
	again = s.allIn(fleet.Ready, 1)
	require.Equal(t, money.Of(1), again.Cost.Providers[s.providers[0]].Rate, "the booking has the price")
	require.False(t, again.Cost.Since.Before(ready.Cost.Since))
}

// The costs of past days can be read without a worker, from every run of the group.
func TestCostsOfPastDaysAreReadWithoutAWorker(t *testing.T) {
	t.Parallel()
	s := newScene(t, 1, func(g *fleet.GroupSpec) { g.Max = 4 }).shortRuns()
	now := time.Now()
	l := fleet.NewLedger(s.spec.ID, now)
	l.Cost = money.Cost{Currency: "USD", Since: now.AddDate(0, 0, -3).UTC(), At: now.UTC()}
	for n := range 3 {
		l.CostDays = append(l.CostDays, money.CostDay{Date: now.UTC().AddDate(0, 0, n-3).Format(time.DateOnly),
			Providers: map[string]money.Money{"milan": money.Money(n + 1)}})
	}
	state, err := fleet.Encode(l)
	require.NoError(t, err)
	first, err := s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{
		ID: workflows.NodeGroupID(s.spec.ID), TaskQueue: s.queue, WorkflowTaskTimeout: workflows.WorkflowTaskTimeout,
	}, workflows.TypeNodeGroup, workflows.EntityInput{Name: s.spec.ID, State: state})
	require.NoError(t, err)
	s.work()
	has := func(when string) {
		t.Helper()
		snap, days, err := s.groups.Costs(s.ctx, s.spec.ID)
		require.NoError(t, err)
		require.Equal(t, l.CostDays, days[:min(3, len(days))], when)
		require.Equal(t, l.Cost.Since.Unix(), snap.Cost.Since.Unix(), when)
	}
	has("in the first run")
	grown := 0
	for n := 0; ; n++ {
		grown++
		s.grow(1)
		s.release(s.allIn(fleet.Ready, 1).Instances[0].Name)
		s.allIn("", 0)
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, workflows.NodeGroupID(s.spec.ID), "")
		require.NoError(t, err)
		if d.WorkflowExecutionInfo.Execution.RunId != first.GetRunID() {
			break
		}
		require.Less(t, n, 20, fmt.Sprint("it continues as new: ", d.WorkflowExecutionInfo.HistoryLength))
	}
	has("in a later one")
	choices, err := s.groups.Choices(s.ctx, s.spec.ID)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(choices), grown)
}
