package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"
)

// wasReset tells whether an operator has reset this run: its history then ends in the past, and so does all it knows.
// An entity that was reset begins anew from what exists, as one that was terminated does; a driver ends, and its entity
// starts it anew where that is still wanted.
//
// What is replayed up to the reset must decide as it did then. So the answer is asked for under a name of its own for
// each task: replayed ones have no marker of it and get no, the first one after the reset gets yes. Other runs leave no
// event.
func wasReset(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.OriginalRunID != "" && info.OriginalRunID != info.WorkflowExecution.RunID && isNew(ctx, "reset")
}

// isNew tells whether the task is not replayed, or was not when the same was asked in it, which left a marker.
func isNew(ctx workflow.Context, what string) bool {
	name := fmt.Sprintf("%s-%d", what, workflow.GetInfo(ctx).GetCurrentHistoryLength())
	return workflow.GetVersion(ctx, name, workflow.DefaultVersion, 1) != workflow.DefaultVersion
}

// onReset calls do once an operator has reset this run.
func onReset(ctx workflow.Context, do func()) {
	workflow.Go(ctx, func(g workflow.Context) {
		if workflow.Await(g, func() bool { return wasReset(g) }) == nil {
			do()
		}
	})
}
