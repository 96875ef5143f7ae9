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

// listPage is how many workflows are asked for at once. Their memos come too, of up to some 200 KB each.
const listPage = 100

// Running lists the groups of this hub that run, sorted. What started or ended a moment ago may be missed: Temporal
// lists from an index that lags behind. Needs no worker. Error: fleet.ErrUnavailable.
func (g *Groups) Running(ctx context.Context) ([]string, error) {
	return g.running(ctx, workflows.TypeNodeGroup, g.group(""))
}

// Close ends a group's entity, which leaves all nodes alone; Configure starts it anew. Idempotent. Error:
// fleet.ErrUnavailable.
func (g *Groups) Close(ctx context.Context, group string) error {
	id := g.group(group)
	err := g.temporal.CancelWorkflow(ctx, id, "")
	var notFound *serviceerror.NotFound
	if err != nil && !errors.As(err, &notFound) {
		return fmt.Errorf("close %s: %w: %w", id, fleet.ErrUnavailable, err)
	}
	return nil
}

// running lists the running entities of a type, by what follows the prefix in their ids. Others are another hub's.
func (b *base) running(ctx context.Context, workflowType, prefix string) (out []string, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: listPage,
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND TaskQueue = '%s'", workflowType,
			b.taskQueue),
	}
	for {
		page, err := b.temporal.ListWorkflow(ctx, request)
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
