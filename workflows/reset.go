package workflows

import "go.temporal.io/sdk/workflow"

// Executor identifies the run and the worker that execute a workflow's tasks.
type Executor struct {
	// Run is the run's id. A reset gives the run another id.
	Run string `json:"run"`
	// Build is the build id of the worker.
	Build string `json:"build"`
}

// executor returns the executor of this task or, in a replay, the recorded executor. The first call records the
// executor in a marker. A later call records it only when the executor has changed. The first call must be the first
// statement of the workflow, because the replay of a run that was reset must make the same calls.
//
// Workflows make later calls only where the executor may have changed. A task whose updates are all refused leaves no
// events, so a replay does not repeat the calls in that task.
func executor(ctx workflow.Context) (e Executor) {
	current := func(ctx workflow.Context) any {
		info := workflow.GetInfo(ctx)
		return Executor{Run: info.WorkflowExecution.RunID, Build: info.GetBinaryChecksum()}
	}
	equal := func(a, b any) bool { return a == b }
	if err := workflow.MutableSideEffect(ctx, "executor", current, equal).Get(&e); err != nil {
		panic(err) // the recorded value is always an Executor
	}
	return e
}

// wasReset reports whether an operator has reset this run. The history of such a run ends at an earlier event, so its
// state is out of date. An entity that was reset starts again from the existing objects, as after a termination. A
// driver that was reset ends, and its entity starts it again if it is still needed.
//
// The replay up to the reset must make the same decisions as the original run. During this replay, the recorded
// executor names the run before the reset. The first task after the reset records the new run. A run that was not
// reset has its original id, and wasReset records nothing in its history.
func wasReset(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	original := info.OriginalRunID // empty in Temporal's test environment
	return original != "" && original != info.WorkflowExecution.RunID && executor(ctx).Run != original
}

// onReset calls the function do after an operator has reset this run.
func onReset(ctx workflow.Context, do func()) {
	workflow.Go(ctx, func(g workflow.Context) {
		if workflow.Await(g, func() bool { return wasReset(g) }) == nil {
			do()
		}
	})
}
