package client

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// namespace is a fake Temporal that lists workflows in pages and records the calls.
type namespace struct {
	Temporal
	pages     [][]string
	published map[string]*common.Payload // by id; nil for an entity that has published no state
	err       error
	calls     []call
}

// call is one call to Temporal: its verb, its workflow and its arguments.
type call struct {
	verb, id string
	args     []any
	options  client.StartWorkflowOptions
}

func (n *namespace) ListWorkflow(_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	n.calls = append(n.calls, call{verb: "list", args: []any{r.GetQuery(), r.GetPageSize()}})
	at := len(r.GetNextPageToken())
	if n.err != nil {
		return nil, n.err
	}
	page := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, id := range n.pages[at] {
		page.Executions = append(page.Executions,
			&workflow.WorkflowExecutionInfo{Execution: &common.WorkflowExecution{WorkflowId: id}})
	}
	if at+1 < len(n.pages) {
		page.NextPageToken = make([]byte, at+1)
	}
	return page, nil
}

func (n *namespace) DescribeWorkflow(_ context.Context, id, _ string) (*client.WorkflowExecutionDescription, error) {
	payload, runs := n.published[id]
	if !runs {
		return nil, serviceerror.NewNotFound("workflow not found")
	}
	memo := &common.Memo{Fields: map[string]*common.Payload{}}
	if payload != nil {
		memo.Fields[workflows.MemoSnapshot] = payload
	}
	return &client.WorkflowExecutionDescription{WorkflowExecutionMetadata: client.WorkflowExecutionMetadata{
		Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, Memo: memo}}, nil
}

func (n *namespace) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, name any,
	args ...any) (client.WorkflowRun, error) {
	n.calls = append(n.calls, call{verb: "start", id: o.ID, args: append([]any{name}, args...), options: o})
	return nil, n.err
}

func (n *namespace) SignalWorkflow(_ context.Context, id, _, name string, arg any) error {
	n.calls = append(n.calls, call{verb: name, id: id, args: []any{arg}})
	return n.err
}

func (n *namespace) SignalWithStartWorkflow(_ context.Context, id, name string, arg any,
	o client.StartWorkflowOptions, entity any, args ...any) (client.WorkflowRun, error) {
	n.calls = append(n.calls, call{verb: name, id: id, args: append([]any{arg, entity}, args...), options: o})
	return nil, n.err
}

func (n *namespace) CancelWorkflow(_ context.Context, id, _ string) error {
	n.calls = append(n.calls, call{verb: "cancel", id: id})
	return n.err
}

// Entities returns each running workflow of a hub once, if the workflow has published a state. The ids of these
// workflows begin with the hub's prefix.
func TestEntitiesAreListedOnce(t *testing.T) {
	n := &namespace{
		pages: [][]string{{"east/nodegroup/b", "nodegroup/foreign"}, {}, {"east/nodegroup/a", "east/nodegroup/b"},
			{"east/nodegroup/ended", "east/nodegroup/new"}},
		published: map[string]*common.Payload{"east/nodegroup/a": packed(t, fleet.Snapshot{Group: "a"}),
			"east/nodegroup/b": packed(t, fleet.Snapshot{Group: "b"}), "east/nodegroup/new": nil},
	}
	names, err := NewGroups(n, "east", "").Running(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "ended", "new"}, names)
	require.Len(t, n.calls, len(n.pages))
	require.Equal(t, []any{"WorkflowType = 'NodeGroup' AND ExecutionStatus = 'Running' AND TaskQueue = " +
		"'liqo-autoscaler-east'", int32(listPage)}, n.calls[0].args)

	groups, err := NewEntities(n, "east", "").Groups(t.Context())
	require.NoError(t, err)
	require.Equal(t, []fleet.Snapshot{{Group: "a"}, {Group: "b"}}, groups)

	n.pages = [][]string{{"east/provider/milan"}}
	n.published["east/provider/milan"] = packed(t, fleet.ProviderSnapshot{ID: "milan"})
	entities := NewEntities(n, "east", "")
	providers, err := entities.Providers(t.Context())
	require.NoError(t, err)
	require.Equal(t, []fleet.ProviderSnapshot{{ID: "milan"}}, providers)
	names, err = entities.ProviderNames(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"milan"}, names)

	n.published["east/provider/milan"] = &common.Payload{Data: []byte("{")}
	_, err = entities.Providers(t.Context())
	require.ErrorContains(t, err, "decode the memo of east/provider/milan")
	n.err = errors.New("no answer")
	for _, list := range []func() error{
		func() error { _, err := entities.Providers(t.Context()); return err },
		func() error { _, err := entities.Groups(t.Context()); return err },
		func() error { _, err := entities.ProviderNames(t.Context()); return err },
	} {
		require.ErrorIs(t, list(), fleet.ErrUnavailable)
	}
}

// Ensure starts a provider that does not run. It does not start a provider that runs or has just been started.
func TestEnsureStartsOnlyStoppedProviders(t *testing.T) {
	n := &namespace{published: map[string]*common.Payload{"provider/milan": nil}}
	e := NewEntities(n, "", "")
	started, err := e.Ensure(t.Context(), "milan")
	require.NoError(t, err)
	require.False(t, started)
	require.Empty(t, n.calls)
	started, err = e.Ensure(t.Context(), "rome")
	require.NoError(t, err)
	require.True(t, started)
	require.Equal(t, []any{workflows.TypeProvider, workflows.EntityInput{Name: "rome", Rules: workflows.CurrentRules}},
		n.calls[0].args)
	requireEntity(t, "provider/rome", n.calls[0].options)
	n.err = errors.New("no answer")
	started, err = e.Ensure(t.Context(), "rome")
	require.ErrorIs(t, err, fleet.ErrOutcomeUnknown)
	require.False(t, started)
}

// requireEntity checks the options of a start: a running entity is used, and an entity that has ended is started
// again.
func requireEntity(t *testing.T, id string, o client.StartWorkflowOptions) {
	t.Helper()
	require.Equal(t, id, o.ID)
	require.Equal(t, "liqo-autoscaler", o.TaskQueue)
	require.Equal(t, workflows.WorkflowTaskTimeout, o.WorkflowTaskTimeout)
	require.Equal(t, enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, o.WorkflowIDConflictPolicy)
	require.Equal(t, enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, o.WorkflowIDReusePolicy)
}

// Each message reaches its entity (the workflow of a group or of a provider) as the signal of the same name. Only a
// request for a hold starts an entity that does not run.
func TestMessagesReachTheirEntity(t *testing.T) {
	n := &namespace{}
	m := NewMessages(n, "", "")
	view, fact := fleet.View{Instance: "a-t0-1"}, fleet.Fact{Instance: "a-t0-1"}
	request, report := fleet.HoldRequest{Key: "lca-a-t0-1-1"}, fleet.PeeringReport{Run: 2}
	differs := fleet.Differences{Round: fleet.RoundID{Term: 1, Number: 3}}
	for _, c := range []struct {
		send func() error
		want call
	}{
		{func() error { return m.View(t.Context(), "a", view) },
			call{verb: workflows.SignalViews, id: "nodegroup/a", args: []any{[]fleet.View{view}}}},
		{func() error { return m.Fact(t.Context(), "a", fact) },
			call{verb: workflows.SignalFacts, id: "nodegroup/a", args: []any{[]fleet.Fact{fact}}}},
		{func() error { return m.Report(t.Context(), "milan", report) },
			call{verb: workflows.SignalReport, id: "provider/milan", args: []any{report}}},
		{func() error { return m.GroupDiffers(t.Context(), "a", differs) },
			call{verb: workflows.SignalDifferences, id: "nodegroup/a", args: []any{differs}}},
		{func() error { return m.ProviderDiffers(t.Context(), "milan", differs) },
			call{verb: workflows.SignalDifferences, id: "provider/milan", args: []any{differs}}},
		{func() error { return m.Holds(t.Context(), "milan", request) },
			call{verb: workflows.SignalHolds, id: "provider/milan", args: []any{[]fleet.HoldRequest{request},
				workflows.TypeProvider, workflows.EntityInput{Name: "milan", Rules: workflows.CurrentRules}}}},
	} {
		n.calls, n.err = nil, nil
		require.NoError(t, c.send())
		require.Len(t, n.calls, 1)
		started := n.calls[0].options
		n.calls[0].options = client.StartWorkflowOptions{}
		require.Equal(t, c.want, n.calls[0])
		if len(c.want.args) > 1 {
			requireEntity(t, c.want.id, started)
		}
		n.err = serviceerror.NewNotFound("workflow not found")
		require.ErrorIs(t, c.send(), fleet.ErrNotRunning)
	}
}

func TestCloseCancelsTheGroup(t *testing.T) {
	n := &namespace{}
	g := NewGroups(n, "east", "")
	require.NoError(t, g.Close(t.Context(), "a"))
	require.Equal(t, []call{{verb: "cancel", id: "east/nodegroup/a"}}, n.calls)
	n.err = serviceerror.NewNotFound("workflow not found")
	require.NoError(t, g.Close(t.Context(), "a"), "it is closed")
	n.err = errors.New("no answer")
	require.ErrorIs(t, g.Close(t.Context(), "a"), fleet.ErrUnavailable)
}

// A refusal by an entity keeps its kind. Any other failure of a handler is a fault of ours and does not count as a
// refusal.
func TestRefusalsKeepTheirKind(t *testing.T) {
	at := time.Unix(1_800_000_000, 0)
	for _, kind := range []fleet.RefusalKind{fleet.RefusedInvalid, fleet.RefusedMax, fleet.RefusedSpending,
		fleet.RefusedPrecondition,
		fleet.RefusedExpired, fleet.RefusedNotInitialised} {
		b := newBase(nil, "", "")
		b.now = func() time.Time { return at.Add(-time.Hour) }
		err := b.fromTemporal("nodegroup/a", temporal.NewApplicationError("because", string(kind), at))
		require.True(t, fleet.IsRefused(err, kind), "%v", err)
		require.ErrorContains(t, err, "because")
		ctx, cancel := context.WithDeadline(t.Context(), at)
		defer cancel()
		require.Equal(t, at.Add(time.Hour-fleet.GiveUpBefore), b.newOperation(ctx).GiveUpAt, "its clock is known")
	}
	b := newBase(nil, "", "")
	err := b.fromTemporal("nodegroup/a", temporal.NewApplicationError("a panic", "PanicError"))
	require.ErrorContains(t, err, "nodegroup/a: a panic")
	require.NotErrorIs(t, err, fleet.ErrOutcomeUnknown)
	b.now = func() time.Time { return at }
	require.Equal(t, at.Add(defaultDeadline-fleet.GiveUpBefore), b.newOperation(t.Context()).GiveUpAt)
}
