package client

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// archive holds the histories of a driver's runs, by run id, and lists some of the runs.
type archive struct {
	Temporal
	listed []string // newest first
	list   error
	events map[string][]*history.HistoryEvent
	read   error
	id     string
}

func (a *archive) ListWorkflow(context.Context,
	*workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	page := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, run := range a.listed {
		page.Executions = append(page.Executions,
			&workflow.WorkflowExecutionInfo{Execution: &common.WorkflowExecution{RunId: run}})
	}
	return page, a.list
}

func (a *archive) GetWorkflowHistory(_ context.Context, id, run string, _ bool,
	_ enums.HistoryEventFilterType) client.HistoryEventIterator {
	a.id = id
	if events, ok := a.events[run]; ok {
		return &iterator{left: events, end: a.read}
	}
	return &iterator{end: serviceerror.NewNotFound("workflow execution not found")}
}

// DriverHistories returns the histories of all runs that Temporal still has, the oldest first. When Temporal lists no
// run yet, DriverHistories returns the history of the newest run.
func TestDriverHistoriesReturnsAllRuns(t *testing.T) {
	event := func(id int64) *history.HistoryEvent { return &history.HistoryEvent{EventId: id} }
	one, two := []*history.HistoryEvent{event(1), event(2), event(3)}, []*history.HistoryEvent{event(4)}
	broken := errors.New("no answer")
	for name, c := range map[string]struct {
		archive
		want  [][]*history.HistoryEvent
		fails string
	}{
		"two runs": {
			archive: archive{listed: []string{"two", "one"}, events: map[string][]*history.HistoryEvent{"one": one, "two": two}},
			want:    [][]*history.HistoryEvent{one, two},
		},
		"one has been removed": {
			archive: archive{listed: []string{"two", "one"}, events: map[string][]*history.HistoryEvent{"two": two}},
			want:    [][]*history.HistoryEvent{two},
		},
		"not listed yet": {
			archive: archive{events: map[string][]*history.HistoryEvent{"": one}}, want: [][]*history.HistoryEvent{one},
		},
		"none":    {},
		"no list": {archive: archive{list: broken}, fails: "list the runs of east/scale-out/a-t0-1: unavailable: no answer"},
		"no read": {
			archive: archive{listed: []string{"one"}, events: map[string][]*history.HistoryEvent{"one": one}, read: broken},
			fails:   "read the history of east/scale-out/a-t0-1: unavailable: no answer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NewGroups(&c.archive, "east", "").DriverHistories(t.Context(), fleet.ScaleOut, "a-t0-1")
			if c.fails != "" {
				require.EqualError(t, err, c.fails)
				require.ErrorIs(t, err, fleet.ErrUnavailable)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, "east/scale-out/a-t0-1", c.archive.id)
		})
	}
}
