package workflows_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// A closed group sends its bill to the hub. A group without costs sends nothing.
func TestClosedGroupSendsItsBillToTheHub(t *testing.T) {
	for name, c := range map[string]struct {
		cost money.Cost
		want money.Money
	}{
		"a node":  {money.Cost{Month: money.Of(60)}, money.Of(60)},
		"nothing": {money.Cost{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := group(t, 0)
			l.Cost = c.cost
			l.Cost.Since, l.Cost.At, l.Cost.Currency = now, now, l.Spec.CurrencyOrDefault()
			l.Spec.Spending = &money.Spending{Account: "team"}
			state, err := fleet.Encode(l)
			require.NoError(t, err)
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestWorkflowEnvironment()
			env.SetStartTime(now)
			var sent []money.Bill
			env.OnSignalExternalWorkflow(mock.Anything, workflows.HubID, "", workflows.SignalBills, mock.Anything).
				Return(func(_, _, _, _ string, bills any) error {
					sent = append(sent, bills.([]money.Bill)...)
					return nil
				})
			env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
			env.ExecuteWorkflow(workflows.Cluster("").NodeGroup, workflows.EntityInput{Name: l.Group, State: state})
			require.True(t, env.IsWorkflowCompleted())
			if c.want == 0 {
				require.Empty(t, sent)
				return
			}
			require.Len(t, sent, 1)
			require.Equal(t, "team", sent[0].Account)
			require.Equal(t, c.want, sent[0].Cost.ThisMonth())
			require.True(t, sent[0].Is(l.Group, now))
		})
	}
}

// A group that hands over its bill to the hub books no further instance, because the booking would be lost.
func TestGroupThatHandsOverItsBillRefusesBookings(t *testing.T) {
	l, now := group(t, 0)
	l.Spec.Max = 5
	l.Cost = money.Cost{Month: money.Of(60), Since: now, At: now, Currency: l.Spec.CurrencyOrDefault()}
	state, err := fleet.Encode(l)
	require.NoError(t, err)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(now)
	env.OnSignalExternalWorkflow(mock.Anything, workflows.HubID, "", workflows.SignalBills, mock.Anything).
		Return(func(_, _, _, _ string, _ any) error { return nil }).After(time.Minute)
	var booked bool
	env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(string(fleet.Grow), "u", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(error) {},
			OnComplete: func(_ any, err error) { booked = err == nil },
		}, fleet.Request{Delta: 1, Operation: fleet.Operation{ID: "late", GiveUpAt: now.Add(time.Hour)}})
	}, 90*time.Second)
	env.ExecuteWorkflow(workflows.Cluster("").NodeGroup, workflows.EntityInput{Name: l.Group, State: state})
	require.True(t, env.IsWorkflowCompleted())
	require.False(t, booked)
}

// The hub stores each received bill once and marks it as settled. A continue-as-new loses no bill.
func TestHubKeepsBills(t *testing.T) {
	running := money.Bill{Group: "a", Account: "team", Cost: money.Cost{Currency: "EUR", Since: t0, At: t0.Add(time.Hour),
		Month: money.Of(7), Providers: map[string]money.ProviderCost{"milan": {Rate: money.Of(2), Nodes: 1}}}}
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(t0)
	bills := func() (book money.Book) {
		value, err := env.QueryWorkflow(workflows.QueryBills)
		require.NoError(t, err)
		require.NoError(t, value.Get(&book))
		return book
	}
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(workflows.SignalBills, []money.Bill{running, running})
		env.SignalWorkflow(workflows.SignalPauseObserver, true)
	}, time.Minute)
	env.RegisterDelayedCallback(func() {
		require.Equal(t, money.Book{running.Settled()}, bills())
		for range 500 {
			env.SignalWorkflow(workflows.SignalBills, []money.Bill{running})
		}
	}, 2*time.Minute)
	env.ExecuteWorkflow(workflows.RunHub, workflows.HubInput{HubState: workflows.HubState{Cluster: "uid"}})
	var next workflows.HubInput
	require.NoError(t, nextInput(env.GetWorkflowError(), &next))
	require.Equal(t, workflows.HubState{Cluster: "uid", ObserverPaused: true}, next.HubState)
	var book money.Book
	require.NoError(t, fleet.Decode(next.Bills, &book))
	require.Len(t, book, 1)
	require.Equal(t, money.Of(7), book[0].Cost.ThisMonth())
}

// nextInput decodes the input with which a workflow continues as new.
func nextInput(err error, input any) error {
	var again *workflow.ContinueAsNewError
	if !errors.As(err, &again) {
		return err
	}
	return converter.GetDefaultDataConverter().FromPayloads(again.Input, input)
}
