package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
)

// Event is what people see of a step in the cluster, as a Kubernetes Event.
type Event struct {
	Reason Reason
	// Node is the attempt's, by its name: it may not exist yet, or any longer. "" when the notice is about no attempt.
	Node    string
	Message string
}

// EventRecorder records Events. Record neither blocks nor fails: what cannot be written is lost. It is safe for
// concurrent use. A second Event with the same reason about a node changes nothing.
type EventRecorder interface{ Record(n Event) }

// Reason says what happened. People and alerts select by it, so the set is small and fixed.
type Reason string

// The reasons about a node, in the order of its life.
const (
	ReasonProviderSelected Reason = "ProviderSelected" // the attempt asks this provider
	ReasonJoining          Reason = "Joining"          // granted: slice and virtual node are being made
	ReasonNodeReady        Reason = "NodeReady"
	ReasonNodeDiffers      Reason = "NodeDiffers"      // from what Cluster Autoscaler was told
	ReasonAttemptFailed    Reason = "AttemptFailed"    // the message begins with the failure's code
	ReasonAttemptCancelled Reason = "AttemptCancelled" // nobody wants it any longer
	ReasonAttemptUndone    Reason = "AttemptUndone"    // what it made is gone on both sides
	ReasonDraining         Reason = "Draining"
	ReasonLost             Reason = "Lost" // its pods are deleted without waiting
	ReasonDrained          Reason = "Drained"
	ReasonDrainFailed      Reason = "DrainFailed" // the pods that are left are deleted
	ReasonReleased         Reason = "Released"
	ReasonEndedPodRemoved  Reason = "EndedPodRemoved" // a Job's, whose quota kept other pods from starting
)

// The reasons about no node.
const (
	ReasonInstanceFailed     Reason = "InstanceFailed" // the message begins with the failure's code
	ReasonInstanceStuck      Reason = "InstanceStuck"  // its scale-in was cancelled by an operator
	ReasonPeeringEstablished Reason = "PeeringEstablished"
	ReasonPeeringFailed      Reason = "PeeringFailed" // likewise
	ReasonPeeringRemoved     Reason = "PeeringRemoved"
	ReasonLeftoverRemoved    Reason = "LeftoverRemoved" // from a provider: nothing here stood for it
)

// Warns reports whether somebody may have to do something.
func (r Reason) Warns() bool {
	switch r {
	case ReasonNodeDiffers, ReasonAttemptFailed, ReasonLost, ReasonDrainFailed, ReasonInstanceFailed,
		ReasonInstanceStuck, ReasonPeeringFailed:
		return true
	case ReasonProviderSelected, ReasonJoining, ReasonNodeReady, ReasonAttemptCancelled, ReasonAttemptUndone,
		ReasonDraining, ReasonDrained, ReasonReleased, ReasonEndedPodRemoved, ReasonPeeringEstablished, ReasonPeeringRemoved,
		ReasonLeftoverRemoved:
	}
	return false
}

func (a *Activities) show(reason Reason, node, format string, args ...any) {
	if a.Events != nil {
		a.Events.Record(Event{Reason: reason, Node: node, Message: shorten.Words(fmt.Sprintf(format, args...), maxError)})
	}
}

// showFirst is show when the activity runs for the first time.
func (a *Activities) showFirst(ctx context.Context, reason Reason, node, format string, args ...any) {
	if activity.GetInfo(ctx).Attempt == 1 {
		a.show(reason, node, format, args...)
	}
}

// showFailure shows a failure, the code first.
func (a *Activities) showFailure(reason Reason, node, what string, f *fleet.Failure) {
	a.show(reason, node, "%s: %s: %s", f.Code, what, f.Message)
}

// showEnd shows why a step of an attempt ended, if it did: one that is tried again has not.
func (a *Activities) showEnd(at fleet.Attempt, failed Reason, what string, err error) {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.NonRetryable() {
		a.showFailure(failed, at.ObjectName(), what, failureIn(err, at.Provider.ID))
	}
}

// failureIn is FailureOf for the activity itself: the details of the SDK's errors can be read only as they are sent.
func failureIn(err error, provider string) *fleet.Failure {
	wire := temporal.GetDefaultFailureConverter()
	return FailureOf(wire.FailureToError(wire.ErrorToFailure(err)), provider)
}

// showLast shows that the attempt before the one that is looked for now failed.
func (a *Activities) showLast(v fleet.View) {
	if f := v.Failure; f != nil && v.Attempt > 0 && v.Offer != nil && v.Offer.Provider == f.Provider {
		a.showFailure(ReasonAttemptFailed, fleet.ObjectName(v.Instance, v.Attempt), "provider "+f.Provider, f)
	}
}

// recordReported records what no step records: that an instance or a peering failed.
func (a *Activities) recordReported(in ReportInput) {
	if v := in.View; v != nil && v.Phase == fleet.Failed && v.Failure != nil {
		a.showFailure(ReasonInstanceFailed, "", "instance "+v.Instance, v.Failure)
	} else if v != nil && v.Stuck != "" {
		a.show(ReasonInstanceStuck, "", "instance %s in %s: %s; it goes on with the next DeleteNodes or the signal retry",
			v.Instance, v.Phase, v.Stuck)
	}
	if r := in.Report; r != nil && r.Failure != nil {
		a.showFailure(ReasonPeeringFailed, "", "peering with provider "+in.Provider, r.Failure)
	}
}
