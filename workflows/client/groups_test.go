package client

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// The error for a group that does not run names some of the groups that run, and the number of the rest.
func TestErrorForUnknownGroupNamesRunningGroups(t *testing.T) {
	absent := fmt.Errorf("nodegroup/gpu %w: %w", fleet.ErrNotRunning, fleet.ErrUnavailable)
	many := func(n int) (ids []string) {
		for i := range n {
			ids = append(ids, fmt.Sprintf("east/nodegroup/g%02d", i))
		}
		return ids
	}
	const none = "there is no node group gpu in hub east"
	for name, c := range map[string]struct {
		err  error
		runs []string
		list error
		want string
	}{
		"another error":     {err: errors.New("no answer"), runs: many(1), want: "no answer"},
		"no list":           {err: absent, list: errors.New("broken"), want: absent.Error()},
		"none":              {err: absent, want: none + ", nor any other"},
		"one":               {err: absent, runs: many(1), want: none + ", which has g00"},
		"two":               {err: absent, runs: many(2), want: none + ", which has g00, g01"},
		"exactly the bound": {err: absent, runs: many(20), want: "g18, g19"},
		"one more":          {err: absent, runs: many(21), want: "g18, g19, and 1 more"},
		"many more":         {err: absent, runs: many(30), want: "g18, g19, and 10 more"},
	} {
		t.Run(name, func(t *testing.T) {
			n := &namespace{pages: [][]string{c.runs}, err: c.list}
			got := NewGroups(n, "east", "").Unknown(t.Context(), "gpu", c.err).Error()
			require.Equal(t, c.want, got[max(0, len(got)-len(c.want)):])
			require.NotContains(t, got, "g20")
		})
	}
}

// costly is a group that answers the query for past days.
type costly struct {
	described
	days    []money.CostDay
	queried error
}

func (c costly) QueryWorkflow(_ context.Context, id, run, query string, _ ...any) (converter.EncodedValue, error) {
	if id != "nodegroup/a" || run != "" || query != workflows.QueryDays {
		return nil, fmt.Errorf("unexpected query %s of %s %s", query, id, run)
	}
	value, err := converter.GetDefaultDataConverter().ToPayloads(c.days)
	return client.NewValue(value), errors.Join(err, c.queried)
}

// The costs of past days come from a query to the group, and a query needs a worker. Without a worker, the state can
// still be read.
func TestCostsOfPastDaysNeedAWorker(t *testing.T) {
	memo := map[string]*common.Payload{workflows.MemoSnapshot: packed(t, fleet.Snapshot{Group: "a"})}
	c := costly{described: described{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, memo: memo}}
	for _, c.days = range [][]money.CostDay{nil, {{Date: "2026-11-20"}}} {
		s, days, err := NewGroups(c, "", "").Costs(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, "a", s.Group)
		require.Equal(t, c.days, days)
	}
	c.queried = errors.New("no poller seen")
	s, days, err := NewGroups(c, "", "").Costs(t.Context(), "a")
	require.ErrorIs(t, err, fleet.ErrUnavailable)
	require.ErrorContains(t, err, "needs a worker")
	require.Equal(t, "a", s.Group)
	require.Empty(t, days)
	c.err = errors.New("no answer")
	_, _, err = NewGroups(c, "", "").Costs(t.Context(), "a")
	require.ErrorIs(t, err, fleet.ErrTemporal)
}

// The choices of a group are read with its state; a group without published choices has an empty list.
func TestChoicesAreReadWithTheState(t *testing.T) {
	choices := []fleet.Choice{{Instance: "a-t0-1", Provider: "milan"}}
	memo := map[string]*common.Payload{workflows.MemoSnapshot: packed(t, fleet.Snapshot{Group: "a"})}
	d := described{status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING, memo: memo}
	got, err := NewGroups(d, "", "").Choices(t.Context(), "a")
	require.NoError(t, err)
	require.Empty(t, got)
	memo[workflows.MemoChoices] = packed(t, choices)
	got, err = NewGroups(d, "", "").Choices(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, choices, got)
	memo[workflows.MemoChoices] = &common.Payload{}
	_, err = NewGroups(d, "", "").Choices(t.Context(), "a")
	require.ErrorContains(t, err, "decode the memo of nodegroup/a")
	d.err = errors.New("no answer")
	_, err = NewGroups(d, "", "").Choices(t.Context(), "a")
	require.ErrorIs(t, err, fleet.ErrUnavailable)
}

// A group that refuses an expired operation returns the time of its clock. The client sends the same operation once
// more. Its new deadline is the time on this clock plus the caller's remaining time.
func TestExpiredOperationIsRepeatedByTheGroupsClock(t *testing.T) {
	at := time.Now().Add(time.Hour)
	for fails, refused := range map[int]bool{1: false, 2: true} {
		r := &refuser{fails: fails, err: temporal.NewApplicationError("expired", string(fleet.RefusedExpired), at)}
		g := NewGroups(r, "", "")
		_, err := g.Grow(t.Context(), "gpu", 1, 0, fleet.Position{})
		require.Equal(t, refused, fleet.IsRefused(err, fleet.RefusedExpired), "%v", err)
		require.Len(t, r.sent, 2)
		require.NotEmpty(t, r.sent[0].ID)
		require.Equal(t, r.sent[0].ID, r.sent[1].ID)
		require.InDelta(t, time.Hour, r.sent[1].GiveUpAt.Sub(r.sent[0].GiveUpAt), float64(time.Minute))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := &refuser{fails: 9, err: temporal.NewApplicationError("expired", string(fleet.RefusedExpired), at)}
	_, err := NewGroups(r, "", "").Grow(ctx, "gpu", 1, 0, fleet.Position{})
	require.True(t, fleet.IsRefused(err, fleet.RefusedExpired))
	require.Len(t, r.sent, 1, "no caller waits any longer")
}

// An accepted operation returns the group's clock, too. The next operation has a new id and a deadline by that clock.
func TestNextOperationUsesTheGroupsClock(t *testing.T) {
	r := &refuser{at: time.Now().Add(-time.Hour)}
	g := NewGroups(r, "", "")
	for range 2 {
		_, err := g.Grow(t.Context(), "gpu", 1, 0, fleet.Position{})
		require.NoError(t, err)
	}
	require.NotEqual(t, r.sent[0].ID, r.sent[1].ID)
	require.InDelta(t, -time.Hour, r.sent[1].GiveUpAt.Sub(r.sent[0].GiveUpAt), float64(time.Minute))
}

// A group is still recovering when the caller of an operation gives up. The operation changes nothing, and the error
// reports this.
func TestOperationOnARecoveringGroupChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &refuser{fails: 1 << 30, err: temporal.NewApplicationError("recovers", string(fleet.RefusedNotInitialised))}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Millisecond)
		defer cancel()
		_, err := NewGroups(r, "", "").Release(ctx, "gpu", nil, fleet.Position{})
		require.ErrorIs(t, err, fleet.ErrUnavailable)
		require.True(t, fleet.IsRefused(err, fleet.RefusedNotInitialised))
		require.ErrorContains(t, err, "release: nodegroup/gpu: unavailable: ")
		require.Len(t, r.sent, 11, "ten times a second")
	})
}

// beginner is a refuser that also starts groups.
type beginner struct {
	refuser
	started client.StartWorkflowOptions
	args    []any
}

func (b *beginner) NewWithStartWorkflowOperation(o client.StartWorkflowOptions, name any,
	args ...any) client.WithStartWorkflowOperation {
	b.started, b.args = o, append([]any{name}, args...)
	return nil
}

func (b *beginner) UpdateWithStartWorkflow(ctx context.Context,
	o client.UpdateWithStartWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return b.UpdateWorkflow(ctx, o.UpdateOptions)
}

// Configure starts its group, and no other operation starts a group.
func TestOnlyConfigureStartsTheGroup(t *testing.T) {
	b, gpu := &beginner{}, fleet.GroupSpec{InstanceSpec: fleet.InstanceSpec{ID: "gpu"}}
	c, err := NewGroups(b, "", "").Configure(t.Context(), gpu, fleet.GroupNotice{}, fleet.Position{})
	require.NoError(t, err)
	require.Equal(t, fleet.Position{Epoch: "t0", Revision: 7}, c)
	require.Len(t, b.sent, 1)
	requireEntity(t, "nodegroup/gpu", b.started)
	require.Equal(t, []any{workflows.TypeNodeGroup, workflows.EntityInput{Name: "gpu", Rules: workflows.CurrentRules}},
		b.args)
	b.err, b.fails = errors.New("no answer"), 2
	_, err = NewGroups(b, "", "").Configure(t.Context(), gpu, fleet.GroupNotice{}, fleet.Position{})
	require.ErrorIs(t, err, fleet.ErrOutcomeUnknown)
}

// Calls that share a booking keep their operation ids when the client repeats them. Here the workflows' clock is
// ahead. The group therefore refused the first call as expired, although its caller still waits.
func TestRepeatedCallsKeepTheirOperationIDs(t *testing.T) {
	late := map[int]fleet.Refusal{1: {Kind: fleet.RefusedExpired, Message: "late"}}
	r := &refuser{at: time.Now().Add(time.Hour), refuse: []map[int]fleet.Refusal{late, nil}}
	g := NewGroups(r, "", "")
	calls := []fleet.Call{g.NewCall(t.Context(), []string{"a"}), g.NewCall(t.Context(), []string{"b"})}
	at, refused, err := g.ReleaseEach(t.Context(), "gpu", calls, fleet.Position{})
	require.NoError(t, err)
	require.Empty(t, refused)
	require.Equal(t, fleet.Position{Epoch: "t0", Revision: 7}, at)
	require.Len(t, r.calls, 2)
	require.NotEqual(t, calls[0].Operation.ID, calls[1].Operation.ID)
	for n, c := range r.calls[1] {
		require.Equal(t, calls[n].Operation.ID, c.Operation.ID)
		require.Equal(t, calls[n].Names, c.Names)
		later := c.Operation.GiveUpAt.Sub(calls[n].Operation.GiveUpAt)
		require.InDelta(t, time.Hour, later, float64(time.Minute), "by the workflows' clock")
	}

	r.refuse = []map[int]fleet.Refusal{{0: {Kind: fleet.RefusedPrecondition, Message: "kept"}}}
	_, refused, err = g.ReleaseEach(t.Context(), "gpu", calls, fleet.Position{})
	require.NoError(t, err)
	require.Equal(t, map[int]fleet.Refusal{0: {Kind: fleet.RefusedPrecondition, Message: "kept"}}, refused)
	require.Len(t, r.calls, 3, "another refusal does not come again")
}
