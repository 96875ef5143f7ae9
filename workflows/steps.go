package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// This file defines the timeouts, retries and lanes of activities. The pauses between the passes of a step are in
// activities/again.go. The activities bound the whole time of a step with a clock that they store in their heartbeats.
// A timeout below never causes an event of the state machine: Temporal retries the activity, or the workflow requests
// it again. An activity without a lane below uses the queue of its own workflow.
const (
	// WorkflowTaskTimeout is short, so that another worker executes a task soon after its worker died.
	WorkflowTaskTimeout = fleet.TaskTimeout
	// shortTimeout bounds an activity that calls Temporal, or chooses an offer.
	shortTimeout = 5 * time.Second
	// choiceTimeout bounds all attempts to choose an offer. During this time the workflow's task is extended every few
	// seconds by three events.
	choiceTimeout = 10 * time.Minute
	// passTimeout bounds one pass of a step in the making or removing lane, see activities.PassBound.
	passTimeout = 15 * time.Second
	// listTimeout bounds lists of all existing objects.
	listTimeout = 30 * time.Second
	// joinTimeout bounds one run of Join. The next run continues its work.
	joinTimeout = 30 * time.Minute
	// heartbeatTimeout is the time after which another worker continues a step or a list of a dead worker.
	heartbeatTimeout = 8 * time.Second
	// forgottenAfter ends a scale-out that is unknown to both its group and its provider: such a scale-out receives no
	// order to repeat its request, and runs no timer. If the group does know it, the group replaces it after its end,
	// as after a termination.
	forgottenAfter = 24 * time.Hour
)

// run executes an activity to its end and decodes its result into out.
func run(options workflow.Context, name string, in, out any) error {
	return workflow.ExecuteActivity(options, name, in).Get(options, out)
}

// short returns the options of an activity that calls Temporal, or reads the catalog.
func short(ctx workflow.Context, summary string) workflow.Context {
	return persistent(ctx, summary, shortTimeout, 0, retry(200*time.Millisecond, shortAgain))
}

// shortFor returns the options of short with a bound on the number of attempts, which together take about most. It does
// not bound the time directly, because a worker compares a ScheduleToClose timeout by its own clock with Temporal's
// time (SDK 1.50, internal/activity.go:486). A worker whose clock is ahead would not run the activity at all.
func shortFor(ctx workflow.Context, summary string, most time.Duration) workflow.Context {
	again := retry(200*time.Millisecond, shortAgain)
	again.MaximumAttempts = quickTries + int32(max(most, 0)/shortAgain)
	return persistent(ctx, summary, shortTimeout, 0, again)
}

// shortAgain is the longest pause between two attempts of a short activity, after quickTries with shorter pauses.
const (
	shortAgain = 10 * time.Second
	quickTries = 6
)

// choosing returns the options of the local activity that chooses an offer. On a busy worker or with a slow Temporal an
// attempt may need all of its time, so all attempts together have choiceTimeout. Without a choice by then the instance
// fails.
func choosing(ctx workflow.Context) workflow.Context { return localFor(ctx, choiceTimeout) }

// local returns the options of a short local activity, which runs within the workflow's task. All its attempts together
// take at most shortTimeout.
func local(ctx workflow.Context) workflow.Context { return localFor(ctx, shortTimeout) }

// localFor returns the options of a local activity whose attempts together take at most most. The worker judges this by
// its own clock alone. If ScheduleToClose is 0, the SDK takes StartToClose for it (SDK 1.50,
// internal/internal_activity.go:211).
func localFor(ctx workflow.Context, most time.Duration) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: shortTimeout, ScheduleToCloseTimeout: most,
		RetryPolicy: retry(200*time.Millisecond, shortAgain),
	})
}

// list returns the options of an activity that lists existing objects.
func list(ctx workflow.Context, summary string) workflow.Context {
	return persistent(ctx, summary, listTimeout, heartbeatTimeout, retry(time.Second, time.Minute))
}

// making and removing return the options of an activity that works in short passes. A pass that has not finished the
// work returns the time of the next pass, and the stage that it waits for.
func making(ctx workflow.Context, summary string) workflow.Context {
	return passes(ctx, LaneMaking, summary)
}

func removing(ctx workflow.Context, summary string) workflow.Context {
	return passes(ctx, LaneRemoving, summary)
}

func passes(ctx workflow.Context, l Lane, summary string) workflow.Context {
	ctx = workflow.WithTaskQueue(ctx, queue(ctx, l))
	return persistent(ctx, summary, passTimeout, heartbeatTimeout, retry(time.Second, time.Minute))
}

// join returns the options of the only activity that may occupy its slot for its whole budget.
func join(ctx workflow.Context, summary string) workflow.Context {
	ctx = workflow.WithTaskQueue(ctx, queue(ctx, LaneMaking))
	return persistent(ctx, summary, joinTimeout, heartbeatTimeout, retry(500*time.Millisecond, 5*time.Second))
}

// persistent returns the options of an activity that Temporal retries until it succeeds. A cancellation waits for the
// activity's end, so that an undo does not overlap with the activity.
func persistent(ctx workflow.Context, summary string, timeout, heartbeat time.Duration,
	again *temporal.RetryPolicy) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		Summary: summary, StartToCloseTimeout: timeout, HeartbeatTimeout: heartbeat, WaitForCancellation: true,
		RetryPolicy: again,
	})
}

func retry(first, most time.Duration) *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: first, BackoffCoefficient: 2, MaximumInterval: most}
}
