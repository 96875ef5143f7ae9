package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// This file defines the timeouts, retries and lanes of activities. The pauses between the passes of a step are in
// activities/again.go. The activities bound the whole duration of a step, and store the used time in their
// heartbeats. A timeout below never causes an event of the state machine: Temporal retries the activity, or the
// workflow requests it again. An activity without a lane below uses the queue of its own workflow.
const (
	// WorkflowTaskTimeout is short, so that another worker executes a task soon after the first worker has died.
	WorkflowTaskTimeout = fleet.TaskTimeout
	// shortTimeout bounds an activity that calls Temporal, or chooses an offer.
	shortTimeout = 5 * time.Second
	// choiceTimeout bounds all attempts to choose an offer. During this time the SDK extends the workflow task every
	// few seconds, which adds three events each time.
	choiceTimeout = 10 * time.Minute
	// passTimeout bounds one pass of a step in the making or removing lane, see activities.PassBound.
	passTimeout = 15 * time.Second
	// listTimeout bounds lists of all existing objects.
	listTimeout = 30 * time.Second
	// joinTimeout bounds one run of Join. The next run continues its work.
	joinTimeout = 30 * time.Minute
	// heartbeatTimeout is the time after which another worker continues the step or the list of a worker that has
	// died.
	heartbeatTimeout = 8 * time.Second
	// forgottenAfter ends a scale-out that neither its group nor its provider knows. Such a scale-out receives no
	// order to repeat its request, and runs no timer. If the group still knows the scale-out, the group replaces it,
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

// shortFor returns the options of short, with a bounded number of attempts. The parameter most is about the time that
// all attempts take together. shortFor sets no ScheduleToClose timeout, because a worker compares the end of this
// timeout, which is in Temporal's time, with its own clock (SDK 1.50, internal/activity.go:486). A worker whose clock
// is ahead would not run the activity at all.
func shortFor(ctx workflow.Context, summary string, most time.Duration) workflow.Context {
	again := retry(200*time.Millisecond, shortAgain)
	again.MaximumAttempts = quickTries + int32(max(most, 0)/shortAgain)
	return persistent(ctx, summary, shortTimeout, 0, again)
}

// shortAgain is the longest pause between two attempts of a short activity. The pauses between the first quickTries
// attempts are shorter.
const (
	shortAgain = 10 * time.Second
	quickTries = 6
)

// choosing returns the options of the local activity that chooses an offer. On a busy worker or with a slow Temporal
// an attempt may take until its timeout. All attempts together may take choiceTimeout. If no offer is chosen in this
// time, the instance fails.
func choosing(ctx workflow.Context) workflow.Context { return localFor(ctx, choiceTimeout) }

// local returns the options of a short local activity, which runs within the workflow's task. All its attempts together
// take at most shortTimeout.
func local(ctx workflow.Context) workflow.Context { return localFor(ctx, shortTimeout) }

// localFor returns the options of a local activity. The parameter most bounds the time that its attempts take
// together. The worker measures this time with its own clock. If ScheduleToClose is 0, the SDK takes StartToClose for
// it (SDK 1.50, internal/internal_activity.go:211).
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
