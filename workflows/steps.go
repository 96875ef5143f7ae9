package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Timeouts and retries live here and nowhere else. Every activity waits for its cancellation, so that no compensation
// overlaps the action it undoes; every one heartbeats; bounds of whole steps are timers in the workflows.
const (
	heartbeatTimeout = 10 * time.Second
	// activityTimeout bounds one run of an activity that never ends by itself; it then starts anew.
	activityTimeout = 30 * time.Minute
	// establishBound bounds one run of peering/<id>.
	establishBound = fleet.EstablishBound
)

// step are the options of a step that may give up: the caller bounds it with a timer.
func step(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		Summary:             summary,
		StartToCloseTimeout: activityTimeout,
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 15 * time.Second,
		},
	})
}

// forever are the options of a step that must succeed in the end.
func forever(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		Summary:             summary,
		StartToCloseTimeout: activityTimeout,
		HeartbeatTimeout:    heartbeatTimeout,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute,
		},
	})
}

// Bounds of the short steps; Peer, WaitForVirtualNode and Drain have theirs in the group's budgets.
const (
	discoverBound = 2 * time.Minute
	selectBound   = 30 * time.Second
)

// bound is how long a step of scale-out or scale-in may take.
func bound(s fleet.Step, b fleet.Budgets) time.Duration {
	b = b.WithDefaults()
	switch s {
	case fleet.StepDiscover:
		return discoverBound
	case fleet.StepSelect:
		return selectBound
	case fleet.StepPeer:
		return b.Peer.Duration
	case fleet.StepWaitForVirtualNode:
		return b.Join.Duration
	case fleet.StepDrain:
		return b.Drain.Duration
	default:
		return 0 // no bound
	}
}
