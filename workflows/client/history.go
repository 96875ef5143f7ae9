package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// DriverHistories returns the histories of an instance's drivers of one kind, oldest first, for each run that Temporal
// still has. An empty result is not an error. It needs no worker. Error: fleet.ErrUnavailable.
func (g *Groups) DriverHistories(ctx context.Context, kind fleet.DriverKind,
	instance string) (runs [][]*history.HistoryEvent, err error) {
	id := g.hub.ID(workflows.DriverID(kind, instance))
	page, err := g.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: listPage, Query: fmt.Sprintf("WorkflowId = '%s'", id)})
	if err != nil {
		return nil, fmt.Errorf("list the runs of %s: %w: %w", id, fleet.ErrUnavailable, err)
	}
	found := page.GetExecutions()
	slices.Reverse(found) // the list has the newest run first
	ids := make([]string, 0, len(found)+1)
	for _, e := range found {
		ids = append(ids, e.GetExecution().GetRunId())
	}
	if len(ids) == 0 {
		ids = []string{""} // the list may be out of date: read the newest run, if any
	}
	for _, run := range ids {
		events, err := eventsOf(g.temporal.GetWorkflowHistory(ctx, id, run, false,
			enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT))
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w: %w", id, fleet.ErrUnavailable, err)
		}
		if len(events) > 0 {
			runs = append(runs, events)
		}
	}
	return runs, nil
}

// eventsOf returns a whole history, or nil when Temporal no longer has it.
func eventsOf(iterator client.HistoryEventIterator) (events []*history.HistoryEvent, err error) {
	for iterator.HasNext() {
		e, err := iterator.Next()
		var notFound *serviceerror.NotFound
		if errors.As(err, &notFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}
