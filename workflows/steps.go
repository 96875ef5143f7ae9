package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Timeouts, retries and lanes of activities live here; how soon a pass of a step comes again says activities/again.go.
// How long a step may take in all is the activities' to judge, by a clock that they keep in their heartbeats. A timeout
// below is never an event: the activity is tried again, or its workflow asks anew. An activity without a lane below
// waits in the queue of its own workflow.
const (
	// WorkflowTaskTimeout lets a task go to another worker soon after one died.
	WorkflowTaskTimeout = fleet.TaskTimeout
	// shortTimeout bounds an activity that asks Temporal, or chooses.
	shortTimeout = 5 * time.Second
	// passTimeout bounds one pass of establishing or removing: see activities.PassBound.
	passTimeout = 15 * time.Second
	// listTimeout bounds lists of everything that exists.
	listTimeout = 30 * time.Second
	// joinTimeout bounds one run of Join; it goes on in the next one.
	joinTimeout = 30 * time.Minute
	// heartbeatTimeout is how soon a step, or a list, goes to another worker after its own died.
	heartbeatTimeout = 8 * time.Second
	// forgottenAfter ends a scale-out whose group and provider have both lost what they knew of it: nobody tells it to ask
	// again, and it runs no timer. One that its group knows is replaced when it is closed, as a terminated one is.
	forgottenAfter = 24 * time.Hour
)

// run runs an activity to its end.
func run(options workflow.Context, name string, in, out any) error {
	return workflow.ExecuteActivity(options, name, in).Get(options, out)
}

// short are the options of an activity that asks Temporal, or the catalog.
func short(ctx workflow.Context, summary string) workflow.Context {
	return persistent(ctx, summary, shortTimeout, 0, retry(200*time.Millisecond, shortAgain))
}

// shortFor is short for an activity that is tried for so long and not longer. It bounds the attempts and not the time:
// a worker judges a ScheduleToClose timeout by its own clock against Temporal's (SDK 1.50, internal/activity.go:486),
// so one whose clock is ahead would do nothing at all.
func shortFor(ctx workflow.Context, summary string, most time.Duration) workflow.Context {
	again := retry(200*time.Millisecond, shortAgain)
	again.MaximumAttempts = quickTries + int32(max(most, 0)/shortAgain)
	return persistent(ctx, summary, shortTimeout, 0, again)
}

// shortAgain is the longest pause between two attempts of a short activity, after quickTries with shorter ones.
const (
	shortAgain = 10 * time.Second
	quickTries = 6
)

// local are those of one that does so within the workflow's task.
func local(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: shortTimeout, RetryPolicy: retry(200*time.Millisecond, 10*time.Second),
	})
}

// list are the options of an activity that lists what exists.
func list(ctx workflow.Context, summary string) workflow.Context {
	return persistent(ctx, summary, listTimeout, heartbeatTimeout, retry(time.Second, time.Minute))
}

// making and removing are the options of an activity that works in short passes: a pass that has not reached its end
// says when the next one is due, and what it waits for.
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

// join are the options of the one activity that may hold its slot for its budget.
func join(ctx workflow.Context, summary string) workflow.Context {
	ctx = workflow.WithTaskQueue(ctx, queue(ctx, LaneMaking))
	return persistent(ctx, summary, joinTimeout, heartbeatTimeout, retry(500*time.Millisecond, 5*time.Second))
}

// persistent are the options of an activity that is tried until it is done. They wait for the end of one that is
// cancelled, so that nothing overlaps what undoes it.
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
