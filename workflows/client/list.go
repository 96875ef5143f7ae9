package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/workflowservice/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// listPage is the number of workflows per request. The answer contains the memos of these workflows, of up to about 200
// KB each.
const listPage = 100

// running lists the running entities of a type. It returns the part of their ids after prefix. Ids without the prefix
// belong to another hub.
func (b *base) running(ctx context.Context, workflowType, prefix string) (out []string, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: listPage,
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running' AND TaskQueue = '%s'", workflowType,
			b.taskQueue),
	}
	for {
		page, err := b.temporal.ListWorkflow(withoutDeadline{ctx}, request)
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
			return slices.Compact(out), nil // the index may list a group twice while it continues as new
		}
	}
}
