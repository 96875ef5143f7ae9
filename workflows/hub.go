package workflows

import (
	"go.temporal.io/sdk/workflow"
)

// HubID is the id of the workflow that claims a hub for one cluster.
const HubID = "hub"

// TypeHub is the type of that workflow.
const TypeHub = "Hub"

// SignalPauseObserver is a signal to the hub, by an operator: true stops the observer, false lets it go on.
const SignalPauseObserver = "pause-observer"

// MemoHub is the memo key under which the hub publishes its HubState.
const MemoHub = "hub"

// HubState is what the workflow hub publishes.
type HubState struct {
	// Cluster is the UID of the consumer cluster that the hub belongs to.
	Cluster string `json:"cluster"`
	// ObserverPaused: an operator has stopped the observer, which leaves everything as it is.
	ObserverPaused bool `json:"observerPaused,omitempty"`
}

// hubSignals is after how many signals the hub continues as new.
const hubSignals = 500

// RunHub is the workflow hub: the claim of one cluster on the names of a hub. A worker of another cluster finds that it
// runs, and ends. It waits for signals of operators, and costs nothing at rest.
func RunHub(ctx workflow.Context, s HubState) error {
	pause := signalChannel(ctx, SignalPauseObserver)
	for range hubSignals {
		if err := workflow.UpsertMemo(ctx, map[string]any{MemoHub: s}); err != nil {
			return err
		}
		details := "hub of cluster " + s.Cluster
		if s.ObserverPaused {
			details += "\n\n**the observer is paused**: nothing is healed, and no dead provider is noticed\n"
		}
		workflow.SetCurrentDetails(ctx, details)
		var paused bool
		pause.Receive(ctx, &paused)
		s.ObserverPaused = paused
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return workflow.NewContinueAsNewError(ctx, TypeHub, s)
}
