package workflows

import "go.temporal.io/sdk/workflow"

// Executor is what executes a workflow's tasks.
type Executor struct {
	// Run is the run's id. A reset gives the run another one.
	Run string `json:"run"`
	// Build is the build id of the worker.
	Build string `json:"build"`
}

// executor returns the executor of this task, or, where the task is replayed, the one that was recorded. The first call
// records it by a marker, and a later call does so when it has changed. The first call has to be the first statement of
// the workflow: the replay of a run that was reset makes the same calls.
//
// A later call is made only where the caller has reason to expect a change: a task whose updates are all refused leaves
// no trace, so that a replay does not repeat the calls made in it.
func executor(ctx workflow.Context) (e Executor) {
	current := func(ctx workflow.Context) any {
		info := workflow.GetInfo(ctx)
		return Executor{Run: info.WorkflowExecution.RunID, Build: info.GetBinaryChecksum()}
	}
	equal := func(a, b any) bool { return a == b }
	if err := workflow.MutableSideEffect(ctx, "executor", current, equal).Get(&e); err != nil {
		panic(err) // what was recorded is an Executor
	}
	return e
}

// wasReset reports whether an operator has reset this run: its history then ends in the past, and so does all it knows.
// An entity that was reset begins anew from what exists, as one that was terminated does; a driver ends, and its entity
// starts it anew where that is still wanted.
//
// What is replayed up to the reset must decide as it did then: there the recorded executor is the run before the reset.
// The first task after the reset records its own. A run that was not reset has the id that it began with, and records
// nothing here.
func wasReset(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	original := info.OriginalRunID // Temporal's test environment has none
	return original != "" && original != info.WorkflowExecution.RunID && executor(ctx).Run != original
}

// onReset calls do once an operator has reset this run.
func onReset(ctx workflow.Context, do func()) {
	workflow.Go(ctx, func(g workflow.Context) {
		if workflow.Await(g, func() bool { return wasReset(g) }) == nil {
			do()
		}
	})
}
