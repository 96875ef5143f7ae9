package client

import (
	"context"
	"fmt"

	"go.temporal.io/api/enums/v1"
)

// Polled checks whether a worker polls the task queue of the groups. why describes the missing worker, and is nil when
// a worker polls the queue. Temporal lists a poller for five minutes after its last poll.
func (g *Groups) Polled(ctx context.Context) (why, err error) {
	queue, err := g.temporal.DescribeTaskQueue(ctx, g.taskQueue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return nil, g.fromTemporal("task queue "+g.taskQueue, err)
	}
	if len(queue.GetPollers()) == 0 {
		return fmt.Errorf("no worker polls task queue %s: start a worker of this hub, and give the server and the worker "+
			"the same --task-queue", g.taskQueue), nil
	}
	return nil, nil
}
