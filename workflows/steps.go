package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Timeouts and retries of activities live here; how soon a pass comes again says activities/passes.go. How long a step
// may take in all is the activities' to judge, by a clock that they keep in their heartbeats: a timeout below is never
// an event: the activity is tried again, or its workflow asks anew.
const (
	// WorkflowTaskTimeout lets a task go to another worker soon after one died.
	WorkflowTaskTimeout = fleet.TaskTimeout
	// shortTimeout bounds an activity that only asks Temporal, or does one short pass.
	shortTimeout = 5 * time.Second
	// passTimeout bounds one pass of establishing or removing: see activities.PassBound.
	passTimeout = 15 * time.Second
	// lookTimeout bounds a look at one provider, which is tried again in the next round only.
	lookTimeout = 10 * time.Second
	// sweepTimeout bounds a look for what is left on many providers.
	sweepTimeout = 20 * time.Second
	// listTimeout bounds lists of everything that exists.
	listTimeout = 30 * time.Second
	// joinTimeout bounds one run of Join; it goes on in the next one.
	joinTimeout = 30 * time.Minute
	// heartbeatTimeout is how soon a Join goes to another worker after its own died.
	heartbeatTimeout = 8 * time.Second
	// forgottenAfter ends a scale-out whose group and provider have both lost what they knew of it: nobody tells it to ask
	// again, and it runs no timer. One that its group knows is replaced when it is closed, as a terminated one is.
	forgottenAfter = 24 * time.Hour
)

// short are the options of an activity that asks Temporal, or the catalog, on the lane of the workflow's own kind.
func short(ctx workflow.Context, l Lane, summary string) workflow.Context {
	return activityOptions(ctx, l, summary, shortTimeout, 0, 200*time.Millisecond, 10*time.Second)
}

// list are the options of an activity that lists what exists.
func list(ctx workflow.Context, summary string) workflow.Context {
	return activityOptions(ctx, LaneEntities, summary, listTimeout, heartbeatTimeout, time.Second, time.Minute)
}

// look are the options of an activity that looks at a provider once.
func look(ctx workflow.Context, summary string) workflow.Context {
	return once(ctx, summary, lookTimeout)
}

// sweeping are the options of an activity that looks at many once.
func sweeping(ctx workflow.Context, summary string) workflow.Context {
	return once(ctx, summary, sweepTimeout)
}

func once(ctx workflow.Context, summary string, timeout time.Duration) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: queue(ctx, LaneEntities), Summary: summary, StartToCloseTimeout: timeout,
		ScheduleToCloseTimeout: timeout, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
}

// pass are the options of an activity that works in short passes: a pass that has not reached its end says when the
// next one is due, and what it waits for.
func pass(ctx workflow.Context, l Lane, summary string) workflow.Context {
	return activityOptions(ctx, l, summary, passTimeout, heartbeatTimeout, time.Second, time.Minute)
}

// join are the options of the one activity that may hold its slot for its budget.
func join(ctx workflow.Context, summary string) workflow.Context {
	return activityOptions(ctx, LaneMaking, summary, joinTimeout, heartbeatTimeout, 500*time.Millisecond, 5*time.Second)
}

// activityOptions wait for a cancelled activity's end, so that nothing overlaps what undoes it.
func activityOptions(ctx workflow.Context, l Lane, summary string, timeout, heartbeat, first,
	most time.Duration) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: queue(ctx, l), Summary: summary, StartToCloseTimeout: timeout, HeartbeatTimeout: heartbeat,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: first, BackoffCoefficient: 2, MaximumInterval: most},
	})
}

// local are the options of a local activity.
func local(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		StartToCloseTimeout: shortTimeout,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
		},
	})
}
