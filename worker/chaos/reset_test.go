package chaos

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// reset resets the newest run of a workflow to one of its completed tasks, like Reset in Temporal's UI.
func (k *monkey) reset(ctx context.Context, id string) error {
	events := k.s.api.GetWorkflowHistory(ctx, id, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var tasks []int64
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return err
		}
		if e.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			tasks = append(tasks, e.GetEventId())
		}
	}
	if len(tasks) == 0 {
		return errors.New("it has done nothing yet")
	}
	_, err := k.s.api.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &common.WorkflowExecution{WorkflowId: id},
		Reason: "chaos", WorkflowTaskFinishEventId: tasks[k.rng.IntN(len(tasks))], RequestId: uuid.NewString(),
	})
	return err
}
