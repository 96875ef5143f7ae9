package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

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

// listPage is how many workflows are asked for at once.
const listPage = 500

// Running lists the groups that run on this task queue, sorted. What started or ended a moment ago may be missed: Temporal
// lists from an index that lags behind. Needs no worker. Error: fleet.ErrUnavailable.
func (g *Groups) Running(ctx context.Context) ([]string, error) {
	return g.running(ctx, workflows.TypeNodeGroup, workflows.NodeGroupID(""))
}

// Running is as for Groups.
func (p *Providers) Running(ctx context.Context) ([]string, error) {
	return p.running(ctx, workflows.TypeProvider, workflows.ProviderID(""))
}

// Close ends a group's entity, which leaves all nodes alone; Configure starts it anew. Idempotent. Error:
// fleet.ErrUnavailable.
func (g *Groups) Close(ctx context.Context, group string) error {
	id := workflows.NodeGroupID(group)
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
func (b *base) running(ctx context.Context, workflowType, prefix string) ([]string, error) {
	lister, ok := b.temporal.(Lister)
	if !ok {
		return nil, errors.New("list: this Temporal client cannot list workflows")
	}
	request := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: listPage,
		Query:    fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND TaskQueue = '%s'", workflowType, b.taskQueue),
	}
	var out []string
	for {
		page, err := lister.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list workflows of type %s: %w: %w", workflowType, fleet.ErrUnavailable, err)
		}
		for _, e := range page.GetExecutions() {
			if name, ok := strings.CutPrefix(e.GetExecution().GetWorkflowId(), prefix); ok {
				out = append(out, name)
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			slices.Sort(out)
			return slices.Compact(out), nil // a group may be listed twice while it continues as new
		}
	}
}
