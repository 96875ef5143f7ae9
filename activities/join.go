package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// JoinInput describes the node to make.
type JoinInput struct {
	Node backend.NodeSpec `json:"node"`
	// View is the driver's view. Join sends it with the phase Ready, as the driver's last view.
	View fleet.View `json:"view"`
}

// Join makes the attempt's slice and VirtualNode, waits until the Node is Ready and stamped, and sends the view Ready
// to the group. It may occupy its slot for the group's whole budget. When another worker continues the Join, the step
// has only the rest of the budget.
func (a *Activities) Join(ctx context.Context, in JoinInput) error {
	at := in.Node.Attempt
	name, provider := at.ObjectName(), "provider "+at.Provider.ID
	a.recordFirstEvent(ctx, ReasonJoining, name, "%s has granted it: ResourceSlice and VirtualNode are being created",
		provider)
	err := a.join(ctx, in)
	switch {
	case err == nil:
		a.recordEvent(ReasonNodeReady, name, "instance %s of node group %s is ready on %s", at.Instance, at.Group, provider)
	case temporal.IsCanceledError(err):
		a.recordEvent(ReasonAttemptCancelled, name, "%s: %s", provider, failureIn(err, at.Provider.ID).Message)
	default:
		a.recordEnd(at, ReasonAttemptFailed, provider, err)
	}
	return err
}

func (a *Activities) join(parent context.Context, in JoinInput) error {
	at := in.Node.Attempt
	provider := at.Provider.ID
	release, err := a.Making.Acquire(provider)
	if err != nil {
		return err
	}
	defer release()
	if done, err := a.confirmBooked(parent, in); done || err != nil {
		return err
	}
	budget := in.Node.Booking.Spec.Budgets.WithDefaults().Join.Duration
	ctx, c := a.startClock(parent, 0, provider)
	defer c.stop()
	bounded, cancel := context.WithTimeout(ctx, max(budget-c.spent(), time.Second))
	defer cancel()
	_, err = a.Backend.Join(bounded, in.Node, c.progress)
	switch {
	case err == nil:
	case stopping(parent):
		return err
	case a.isNodeReady(parent, at): // the Node was ready in time, despite the error
	case parent.Err() != nil:
		return temporal.NewCanceledError(failureOf(provider, err))
	case errors.Is(err, backend.ErrNotPeered):
		return a.notPeered(parent, c, budget, at, err)
	case refusalIn(err) != nil:
		return a.refusing(parent, c, budget, at, err)
	case code(err).Row().Final:
		return refused(failureOf(provider, err), err)
	default:
		c.pauseDuringFault(parent, errors.Is(err, backend.ErrUnreachable))
		return c.retryWithin(parent, budget, failureOf(provider, err))
	}
	ready := in.View.Joined()
	return a.Messages.View(context.WithoutCancel(parent), at.Group, ready)
}

// notPeered reports to the provider entity that the peering of a granted hold is missing: a person has removed the
// peering by hand. The entity repairs the peering, and Temporal retries the step within its budget.
func (a *Activities) notPeered(ctx context.Context, c *clock, budget time.Duration, at fleet.Attempt, err error) error {
	reportErr := a.Messages.Holds(ctx, at.Provider.ID, fleet.HoldRequest{Kind: fleet.HoldBroken, Key: at.ObjectName()})
	f := failureOf(at.Provider.ID, errors.Join(err, reportErr))
	f.Code, f.Stage = fleet.CodeRefused, "peering"
	return c.retryWithin(ctx, budget, f)
}

// retryWithin returns a retryable error while budget remains, and the final error of the step when the budget is used
// up.
func (c *clock) retryWithin(ctx context.Context, budget time.Duration, f *fleet.Failure) error {
	if c.exceeded(budget) {
		return budgetExceeded(f, budget)
	}
	return c.retryPass(ctx, f, stepDelay)
}

// refusing reports to the provider entity that the provider refuses this hub as a whole, so that other steps send no
// requests to the provider.
func (a *Activities) refusing(ctx context.Context, c *clock, budget time.Duration, at fleet.Attempt, err error) error {
	f := failureOf(at.Provider.ID, err)
	reportErr := a.Messages.Holds(ctx, at.Provider.ID, fleet.HoldRequest{
		Kind: fleet.HoldRefusing, Key: at.ObjectName(), Refusing: refusalIn(err),
	})
	if reportErr != nil && c.spent() < budget {
		return c.retryPass(ctx, f, stepDelay)
	}
	return refused(f, err)
}

// isNodeReady lists the attempt's objects once more and reports whether the attempt is complete: its Node is on the
// chosen provider, is stamped and accepts pods. A Node of the same name on another provider does not count. An
// earlier run of this attempt made that Node, before Temporal was restored from a backup that does not contain the
// run. The group adds that Node to its ledger when it compares the ledger with the objects.
func (a *Activities) isNodeReady(ctx context.Context, at fleet.Attempt) bool {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	found, _, err := a.of(bounded, at.Group, []string{at.Instance})
	return err == nil && slices.ContainsFunc(found, func(f fleet.Found) bool {
		return f.Attempt.Number == at.Number && f.Attempt.Provider.ID == at.Provider.ID &&
			f.Marked && f.Stamped && f.Ready && !f.Starting && !f.Terminating
	})
}
