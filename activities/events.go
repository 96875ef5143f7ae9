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

// Event describes a step to the users of the cluster, as a Kubernetes Event.
type Event struct {
	Reason Reason
	// Node is the name of the attempt's Node, which may not exist yet or may be deleted already. It is "" when the
	// Event concerns no attempt.
	Node    string
	Message string
}

// EventRecorder records Events. Record neither blocks nor fails: an Event that cannot be written is lost. It is safe
// for concurrent use. A second Event with the same reason about the same node has no effect.
type EventRecorder interface{ Record(n Event) }

// Reason names the kind of an Event. Users and alerts select by it, so the set is small and fixed.
type Reason string

// These are the reasons of Events about a node, in the order of the node's life.
const (
	ReasonProviderSelected Reason = "ProviderSelected" // the attempt requests a hold from this provider
	ReasonJoining          Reason = "Joining"          // the hold is granted: slice and virtual node are being made
	ReasonNodeReady        Reason = "NodeReady"
	ReasonNodeDiffers      Reason = "NodeDiffers"      // the node differs from Cluster Autoscaler's template
	ReasonAttemptFailed    Reason = "AttemptFailed"    // the message begins with the failure's code
	ReasonAttemptCancelled Reason = "AttemptCancelled" // the instance is no longer needed
	ReasonAttemptUndone    Reason = "AttemptUndone"    // the attempt's objects are deleted everywhere
	ReasonDraining         Reason = "Draining"
	ReasonLost             Reason = "Lost" // the node's pods are deleted without waiting
	ReasonDrained          Reason = "Drained"
	ReasonDrainFailed      Reason = "DrainFailed" // the remaining pods are deleted
	ReasonReleased         Reason = "Released"
	ReasonEndedPodRemoved  Reason = "EndedPodRemoved" // a Job's ended pod used quota that other pods need
)

// These are the reasons of Events that concern no node.
const (
	ReasonInstanceFailed     Reason = "InstanceFailed" // the message begins with the failure's code
	ReasonInstanceStuck      Reason = "InstanceStuck"  // an operator cancelled the instance's scale-in
	ReasonPeeringEstablished Reason = "PeeringEstablished"
	ReasonPeeringFailed      Reason = "PeeringFailed" // the message begins with the failure's code
	ReasonPeeringRemoved     Reason = "PeeringRemoved"
	ReasonLeftoverRemoved    Reason = "LeftoverRemoved" // an object on a provider without a counterpart here
)

// Warns reports whether the Event is a warning, which may need an operator's action.
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

func (a *Activities) recordEvent(reason Reason, node, format string, args ...any) {
	if a.Events != nil {
		a.Events.Record(Event{Reason: reason, Node: node, Message: shorten.Words(fmt.Sprintf(format, args...), maxError)})
	}
}

// recordFirstEvent records an Event only in the first run of the activity.
func (a *Activities) recordFirstEvent(ctx context.Context, reason Reason, node, format string, args ...any) {
	if activity.GetInfo(ctx).Attempt == 1 {
		a.recordEvent(reason, node, format, args...)
	}
}

// recordFailure records a failure as an Event whose message begins with the failure's code.
func (a *Activities) recordFailure(reason Reason, node, what string, f *fleet.Failure) {
	a.recordEvent(reason, node, "%s: %s: %s", f.Code, what, f.Message)
}

// recordEnd records the failure that ended a step of an attempt. It records nothing for a step that Temporal retries.
func (a *Activities) recordEnd(at fleet.Attempt, failed Reason, what string, err error) {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.NonRetryable() {
		a.recordFailure(failed, at.ObjectName(), what, failureIn(err, at.Provider.ID))
	}
}

// failureIn returns the failure in an error of the running activity. The details of the SDK's errors can be read only
// after conversion to the wire format, so failureIn converts the error first.
func failureIn(err error, provider string) *fleet.Failure {
	wire := temporal.GetDefaultFailureConverter()
	return FailureOf(wire.FailureToError(wire.ErrorToFailure(err)), provider)
}

// recordLastFailure records the failure of the last attempt, when a scale-out selects a provider for the next
// attempt.
func (a *Activities) recordLastFailure(v fleet.View) {
	if f := v.Failure; f != nil && v.Attempt > 0 && v.Offer != nil && v.Offer.Provider == f.Provider {
		a.recordFailure(ReasonAttemptFailed, fleet.ObjectName(v.Instance, v.Attempt), "provider "+f.Provider, f)
	}
}

// recordReported records the Events that no step records: the failure of an instance or of a peering.
func (a *Activities) recordReported(in ReportInput) {
	if v := in.View; v != nil && v.Phase == fleet.Failed && v.Failure != nil {
		a.recordFailure(ReasonInstanceFailed, "", "instance "+v.Instance, v.Failure)
	} else if v != nil && v.Stuck != "" {
		a.recordEvent(ReasonInstanceStuck, "",
			"instance %s in %s: %s; the next DeleteNodes or the signal retry continues its removal", v.Instance, v.Phase,
			v.Stuck)
	}
	if r := in.Report; r != nil && r.Failure != nil {
		a.recordFailure(ReasonPeeringFailed, "", "peering with provider "+in.Provider, r.Failure)
	}
}
