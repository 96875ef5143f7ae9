package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Lister is the part of the SDK's client that lists workflows.
type Lister interface {
	ListWorkflow(ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
}

// Canceller is the part of the SDK's client that cancels workflows.
type Canceller interface {
	CancelWorkflow(ctx context.Context, workflowID, runID string) error
}

// listPage is how many workflows are asked for at once. Their memos come too, of up to some 200 KB each.
const listPage = 100

// Running lists the groups of this hub that run, sorted. What started or ended a moment ago may be missed: Temporal
// lists from an index that lags behind. Needs no worker. Error: fleet.ErrUnavailable.
func (g *Groups) Running(ctx context.Context) ([]string, error) {
	return g.running(ctx, workflows.TypeNodeGroup, g.group(""))
}

// Running is as for Groups.
func (p *Providers) Running(ctx context.Context) ([]string, error) {
	return p.running(ctx, workflows.TypeProvider, p.provider(""))
}

// Listed returns the state of every provider of this hub that runs, as Temporal's list has it: Status is newer. One
// whose state cannot be decoded is left out. Needs no worker. Error: fleet.ErrUnavailable.
func (p *Providers) Listed(ctx context.Context) (out []fleet.ProviderState, err error) {
	err = p.list(ctx, workflows.TypeProvider, p.provider(""), func(_ string, e *workflow.WorkflowExecutionInfo) {
		var s fleet.ProviderState
		payload, ok := e.GetMemo().GetFields()[workflows.MemoSnapshot]
		if ok && converter.GetDefaultDataConverter().FromPayload(payload, &s) == nil {
			out = append(out, s)
		}
	})
	return out, err
}

// Close ends a group's entity, which leaves all nodes alone; Configure starts it anew. Idempotent. Error:
// fleet.ErrUnavailable.
func (g *Groups) Close(ctx context.Context, group string) error {
	id := g.group(group)
	canceller, ok := g.temporal.(Canceller)
	if !ok {
		return errors.New("close: this Temporal client cannot cancel workflows")
	}
	err := canceller.CancelWorkflow(ctx, id, "")
	var notFound *serviceerror.NotFound
	if err != nil && !errors.As(err, &notFound) {
		return fmt.Errorf("close %s: %w: %w", id, fleet.ErrUnavailable, err)
	}
	return nil
}

// running lists the running entities of a type, without the prefix of their ids.
func (b *base) running(ctx context.Context, workflowType, prefix string) (out []string, err error) {
	err = b.list(ctx, workflowType, prefix, func(name string, _ *workflow.WorkflowExecutionInfo) { out = append(out, name) })
	slices.Sort(out)
	return slices.Compact(out), err // a group may be listed twice while it continues as new
}

// list calls found for each running entity of a type, with what follows the prefix in its id. Others are another hub's.
func (b *base) list(ctx context.Context, workflowType, prefix string, found func(name string, e *workflow.WorkflowExecutionInfo)) error {
	lister, ok := b.temporal.(Lister)
	if !ok {
		return errors.New("list: this Temporal client cannot list workflows")
	}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: listPage,
		Query:    fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND TaskQueue = '%s'", workflowType, b.taskQueue),
	}
	for {
		page, err := lister.ListWorkflow(ctx, request)
		if err != nil {
			return fmt.Errorf("list workflows of type %s: %w: %w", workflowType, fleet.ErrUnavailable, err)
		}
		for _, e := range page.GetExecutions() {
			if name, ok := strings.CutPrefix(e.GetExecution().GetWorkflowId(), prefix); ok {
				found(name, e)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}
