package workflows

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkactivity "go.temporal.io/sdk/activity"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// The function `within` calls `do` in a workflow of the hub "edge". The workflow has the id of one of the hub's
// entities.
func within(t *testing.T, id string, do func(workflow.Context)) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartWorkflowOptions(sdkclient.StartWorkflowOptions{ID: id, TaskQueue: "liqo"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		do(ctx)
		return nil
	})
	require.NoError(t, env.GetWorkflowError())
}

// Each command of a provider becomes a task for a workflow of the provider's hub. A provider carries out no command of
// a group.
func TestProviderCommandsBecomeTasks(t *testing.T) {
	offer := fleet.Offer{Name: "milan", Provider: "milan", Credentials: fleet.Credentials{KubeconfigFile: "milan.yaml"}}
	answer := &fleet.Answer{}
	cancelled := "edge/unpeering/milan"
	for kind, want := range map[fleet.CommandKind]*activities.Task{
		fleet.CommandAnswer:  {Signal: &activities.Signal{ID: "edge/scale-out/a-t0-1", Name: SignalAnswer, Answer: answer}},
		fleet.CommandCancel:  {Cancel: cancelled},
		fleet.CommandRefusal: {Peer: &fleet.Provider{ID: "milan", Credentials: offer.Credentials}},
		// Recovery waits for a running removal of the peering, except when the provider itself started the removal.
		fleet.CommandRecover: {After: cancelled},
		fleet.CommandStart:   nil, fleet.CommandUndo: nil, fleet.CommandOrder: nil, fleet.CommandDescribe: nil,
		fleet.CommandInspect: nil, fleet.CommandHold: nil, fleet.CommandStandby: nil, fleet.CommandSave: nil,
	} {
		within(t, "edge/provider/milan", func(ctx workflow.Context) {
			p := &providerRun{ctx: ctx, provider: provider.New("milan", workflow.Now(ctx))}
			p.provider.Offer = &offer
			task, carriesOut := p.task(fleet.Command{ID: 7, Kind: kind, Instance: "a-t0-1", Answer: answer})
			require.Equal(t, want != nil, carriesOut, kind)
			if want == nil {
				return
			}
			want.ID, want.Kind, want.Provider = 7, kind, "milan"
			require.Equal(t, *want, task, kind)
		})
	}
	for kind, want := range map[fleet.CommandKind]string{
		fleet.CommandPeering: "peering/milan", fleet.CommandUnpeering: "unpeering/milan",
	} {
		within(t, "edge/provider/milan", func(ctx workflow.Context) {
			p := &providerRun{ctx: ctx, provider: provider.New("milan", workflow.Now(ctx))}
			p.provider.Offer = &offer
			task, carriesOut := p.task(fleet.Command{Kind: kind})
			require.True(t, carriesOut, kind)
			require.Equal(t, "edge/"+want, task.Start.ID)
			require.Equal(t, "liqo-drivers", task.Start.Queue)
			require.Equal(t, offer.Credentials, task.Start.Peering.Provider.Credentials)
			require.True(t, task.Start.Again, "the peering of a provider has one id, whatever came of the one before")
			require.Equal(t, map[string]string{AttributeProvider: "milan"}, task.Start.Attributes)
		})
	}
}

// A provider that was unused for a day closes at the next message. Releases within that day do not delay the close.
func TestUnusedProviderCloses(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartWorkflowOptions(sdkclient.StartWorkflowOptions{ID: ProviderID("milan"), TaskQueue: "liqo"})
	done := func(_ context.Context, batch ...activities.Task) (results []fleet.Result, err error) {
		for _, task := range batch {
			results = append(results, fleet.Result{ID: task.ID, Outcome: fleet.OutcomeDone})
		}
		return results, nil
	}
	env.RegisterActivityWithOptions(func(ctx context.Context, task activities.Task) ([]fleet.Result, error) {
		return done(ctx, task)
	}, sdkactivity.RegisterOptions{Name: activities.NameInspect})
	env.RegisterActivityWithOptions(func(ctx context.Context, batch []activities.Task) ([]fleet.Result, error) {
		return done(ctx, batch...)
	}, sdkactivity.RegisterOptions{Name: activities.NameDeliver})
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(SignalHolds, []fleet.HoldRequest{{Kind: fleet.HoldRelease, Key: "lca-a-t0-1-1"}})
	}, time.Minute)
	for n, after := range []time.Duration{fleet.CloseAfter - time.Hour, fleet.CloseAfter + time.Hour} {
		env.RegisterDelayedCallback(func() {
			require.False(t, env.IsWorkflowCompleted())
			env.SignalWorkflow(SignalDifferences, fleet.Differences{Round: fleet.RoundID{Number: int64(n + 1)}})
		}, after)
	}
	env.ExecuteWorkflow(Provider, EntityInput{Name: "milan"})
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
}

// Each command of a group becomes a task for a driver of the group's hub. A group carries out no command of a provider.
func TestGroupCommandsBecomeTasks(t *testing.T) {
	now := time.Unix(2_000_000, 0)
	at := fleet.Attempt{Group: "a", Instance: "a-t0-1", Number: 2, Provider: fleet.Provider{ID: "milan"}}
	order, hold := &fleet.Order{}, &fleet.HoldRequest{Kind: fleet.HoldRelease}
	ledger := fleet.NewLedger("a", now)
	ledger.Entries = append(ledger.Entries, &fleet.Entry{Instance: fleet.Instance{Name: "a-t0-1"}},
		&fleet.Entry{Instance: fleet.Instance{Name: "a-t0-2"}})
	ledger.Entries[0].Driver.Kind = fleet.ScaleOut // the other driver has ended
	ledger.Entries[0].Trace = "trace"
	ledger.Restore()
	for kind, want := range map[fleet.CommandKind]*activities.Task{
		fleet.CommandOrder: {Signal: &activities.Signal{ID: "edge/scale-out/a-t0-1", Name: SignalOrder, Order: order}},
		fleet.CommandDescribe: {Drivers: []activities.DriverName{
			{Instance: "a-t0-1", WorkflowID: "edge/scale-out/a-t0-1"}}},
		fleet.CommandInspect: {Instances: []string{"a-t0-1", "a-t0-2", "a-t0-3"}},
		fleet.CommandUndo: {Start: &activities.Start{Type: TypeUndo, ID: "edge/undo/a-t0-1-2", Queue: "liqo-drivers",
			Undo: &fleet.UndoInput{Attempt: at}, Summary: "undo lca-a-t0-1-2 on milan", Again: true, Trace: "trace",
			Attributes: map[string]string{
				AttributeGroup: "a", AttributeInstance: "a-t0-1", AttributeProvider: "milan"}}},
		fleet.CommandSave: {Save: &fleet.Position{Epoch: ledger.Epoch}},
		fleet.CommandHold: {}, fleet.CommandRecover: {},
		fleet.CommandStart:   nil, // the command belongs to an earlier driver of the instance
		fleet.CommandStandby: nil, // the group keeps no standbys
		fleet.CommandAnswer:  nil, fleet.CommandPeering: nil, fleet.CommandUnpeering: nil, fleet.CommandCancel: nil,
		fleet.CommandRefusal: nil,
	} {
		within(t, "edge/nodegroup/a", func(ctx workflow.Context) {
			g := &nodeGroup{ctx: ctx, ledger: ledger}
			task, carriesOut := g.task(fleet.Command{ID: 7, Kind: kind, Instance: "a-t0-1", Driver: fleet.ScaleOut,
				Generation: fleet.Generation{Count: 9}, Order: order, Attempt: &at, Provider: "milan", Hold: hold,
				Instances: []string{"a-t0-1", "a-t0-2", "a-t0-3"}})
			require.Equal(t, want != nil, carriesOut, kind)
			if want == nil {
				return
			}
			want.ID, want.Kind, want.Group, want.Provider, want.Hold = 7, kind, "a", "milan", hold
			require.Equal(t, *want, task, kind)
		})
	}
}
