package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// DrainInput names the node to drain.
type DrainInput struct {
	Attempt fleet.Attempt `json:"attempt"`
	// Force means that pods are deleted and not evicted.
	Force bool `json:"force,omitempty"`
	// Budget is the longest time that the eviction may take.
	Budget metav1.Duration `json:"budget,omitzero"`
}

// Drain removes the pods from the attempt's node, in short passes. A node that does not exist counts as empty. Drain
// fails when its budget is used up.
func (a *Activities) Drain(ctx context.Context, in DrainInput) error {
	at, name := in.Attempt, in.Attempt.ObjectName()
	if in.Force {
		a.recordFirstEvent(ctx, ReasonLost, name, "instance %s is lost: its pods are deleted without waiting", at.Instance)
	} else {
		a.recordFirstEvent(ctx, ReasonDraining, name, "instance %s is released: its pods are evicted", at.Instance)
	}
	err := a.removal(ctx, at.Provider.ID, in.Budget.Duration, func(ctx context.Context, p backend.Progress) error {
		return a.Backend.Drain(ctx, at, in.Force, p)
	})
	if err == nil {
		a.recordEvent(ReasonDrained, name, "no pod is left on the node; the slice is returned to provider %s", at.Provider.ID)
	}
	a.recordEnd(at, ReasonDrainFailed, "the pods that are left are deleted", err)
	return err
}

// ReturnInput names the attempt to return.
type ReturnInput struct {
	Attempt fleet.Attempt `json:"attempt"`
	// View is the driver's view. Return sends it with the phase Released, as the driver's last view. It is nil when
	// only the attempt is undone.
	View *fleet.View `json:"view,omitempty"`
}

// Return removes the attempt's node and slice on the consumer and the provider, in short passes, and then releases
// its hold. After the last hold the provider entity removes the peering. Return never gives up.
func (a *Activities) Return(ctx context.Context, in ReturnInput) error {
	err := a.removal(ctx, in.Attempt.Provider.ID, 0, func(ctx context.Context, p backend.Progress) error {
		return a.Backend.Return(ctx, in.Attempt, p)
	})
	if err != nil {
		return err
	}
	report := ReportInput{Provider: in.Attempt.Provider.ID, Holds: []fleet.HoldRequest{
		{Kind: fleet.HoldRelease, Key: in.Attempt.ObjectName()},
	}}
	if in.View != nil {
		released := in.View.Returned()
		report.Group, report.View = in.Attempt.Group, &released
	}
	if err := a.Report(ctx, report); err != nil {
		return err
	}
	reason := ReasonReleased
	if in.View == nil {
		reason = ReasonAttemptUndone
	}
	text := "node and slice are gone, here and on provider %s"
	if reason == ReasonReleased { // containers, or a dead provider, may need more time
		text += "; containers of its pods may still use their grace period there"
	}
	a.recordEvent(reason, in.Attempt.ObjectName(), text, in.Attempt.Provider.ID)
	return nil
}

// Establish makes the peering with a provider, or adopts an existing peering, in short passes within the input's
// budgets. It reports success to the provider's entity. Only the workflow peering/<provider> runs it.
func (a *Activities) Establish(ctx context.Context, in fleet.PeeringInput) error {
	most := limit{
		budget:  cmp.Or(in.Budget.Duration, fleet.EstablishBound),
		network: cmp.Or(in.NetworkBudget.Duration, fleet.NetworkBound),
	}
	if done, err := a.superseded(ctx, in); err != nil || done {
		return err
	}
	release, err := a.Making.Acquire(in.Provider.ID)
	if err != nil {
		return err // this wait precedes the clock, because the provider does not cause it
	}
	defer release()
	lacks := ""
	err = a.pass(ctx, in.Provider.ID, most, func(ctx context.Context, p backend.Progress) error {
		err := a.Backend.Establish(ctx, in.Provider, p)
		if errors.Is(err, backend.ErrNoRoom) {
			lacks = failureOf(in.Provider.ID, err).Message
		}
		return err
	})
	if lacks != "" {
		a.reportNoRoom(ctx, in.Provider.ID, lacks)
	}
	if err != nil {
		return err
	}
	err = a.Report(ctx, ReportInput{Provider: in.Provider.ID, Report: &fleet.PeeringReport{Run: in.Run,
		Event: fleet.PeeringDone}})
	if err == nil {
		a.recordEvent(ReasonPeeringEstablished, "", "peering with provider %s is established", in.Provider.ID)
	}
	return err
}

// reportNoRoom reports to the provider's entity that this cluster has no free capacity for a pod of the peering,
// unless the entity already publishes this fault. The report arrives seconds after a pod could not be scheduled,
// while the observer's rounds are a minute apart.
func (a *Activities) reportNoRoom(ctx context.Context, provider, lacks string) {
	s, err := a.Entities.Provider(ctx, provider)
	if err == nil && s.Standing.Fault == "" {
		err = a.Messages.Holds(ctx, provider, fleet.HoldRequest{Kind: fleet.HoldNoRoom, Message: lacks})
	}
	if err != nil {
		activity.GetLogger(ctx).Warn("cannot report that this cluster has no free capacity; the next pass tries again",
			"provider",
			provider, "error", err)
	}
}

// RemovePeering removes the peering with a provider, if it is owned by us and not in use (I11). It reports the
// outcome to the provider's entity. If objects that record the provider's refusal stay, it also reports that refusal.
// Only the workflow unpeering/<provider> runs it. It never gives up.
func (a *Activities) RemovePeering(ctx context.Context, in fleet.PeeringInput) error {
	if done, err := a.superseded(ctx, in); err != nil || done {
		return err
	}
	event, refusing := fleet.PeeringDone, (*fleet.ProviderRefusal)(nil)
	err := a.removal(ctx, in.Provider.ID, 0, func(ctx context.Context, p backend.Progress) error {
		err := a.Backend.RemovePeering(ctx, a.current(ctx, in.Provider), p)
		if errors.Is(err, backend.ErrInUse) {
			activity.GetLogger(ctx).Info("the peering is used and stays", "provider", in.Provider.ID, "why", err)
			event, err = fleet.PeeringInUse, nil
		}
		if refusing = refusalIn(err); refusing != nil {
			activity.GetLogger(ctx).Info("the objects that record the provider's refusal stay", "provider", in.Provider.ID,
				"why", err)
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	err = a.Report(ctx, ReportInput{Provider: in.Provider.ID, Report: &fleet.PeeringReport{Run: in.Run, Event: event,
		Refusing: refusing}})
	if err == nil && event == fleet.PeeringDone && refusing == nil {
		a.recordEvent(ReasonPeeringRemoved, "", "peering with provider %s is removed, or was not ours", in.Provider.ID)
	}
	return err
}

// superseded reports whether the provider entity has left the phase for which it started this run. A run that is
// executed late, or repeated, must not undo later decisions. It reads the entity's state now, because a remembered
// state may be older than this run. If the entity does not run, superseded returns true: the entity inspects the
// existing objects when it starts again.
func (a *Activities) superseded(ctx context.Context, in fleet.PeeringInput) (bool, error) {
	s, err := a.Entities.Status(ctx, in.Provider.ID)
	switch {
	case errors.Is(err, fleet.ErrNotRunning):
		return true, nil
	case err != nil:
		return false, toApplicationError(ctx, in.Provider.ID, fmt.Errorf("ask provider/%s for its phase: %w", in.Provider.ID,
			err))
	}
	return s.Over(in.Run), nil
}

// current returns the provider with the credentials that its offer names now. The credentials may have changed since
// the peering was made. With the old credentials the removal, which never gives up, would fail again and again. If no
// offer exists, or the catalog does not answer, current keeps the given credentials.
func (a *Activities) current(ctx context.Context, p fleet.Provider) fleet.Provider {
	if offer := a.offerOf(ctx, p.ID); offer != nil {
		p.Credentials = offer.Credentials
	}
	return p
}

// removal runs one pass of a removal. The pass occupies one of the provider's places (Activities.Removing). So
// removals that wait for one provider leave slots of the worker to other providers.
func (a *Activities) removal(ctx context.Context, provider string, budget time.Duration, do func(context.Context,
	backend.Progress) error) error {
	release, err := a.Removing.Acquire(provider)
	if err != nil {
		return err
	}
	defer release()
	return a.pass(ctx, provider, limit{budget: budget}, do)
}

// limit contains the longest times that may be spent on a step; 0 means no limit.
type limit struct {
	budget  time.Duration
	network time.Duration // for stages of the network, whose time does not count towards budget
}

// usedUp returns the budget that is used up. The result exceeded is false if no budget is used up.
func (l limit) usedUp(c *clock) (budget time.Duration, exceeded bool) {
	switch without, network := c.spentOn(); {
	case !c.exceeded(0):
		return 0, false
	case l.network > 0 && network >= l.network:
		return l.network, true
	case l.network > 0 && without >= l.budget, l.network == 0 && without+network >= l.budget:
		return l.budget, true
	default:
		return 0, false
	}
}

// pass runs one pass of a step. Temporal retries a pass that did not finish. In a step with a budget, a refusal by the
// provider and the end of the budget are final.
func (a *Activities) pass(parent context.Context, provider string, limit limit, do func(context.Context,
	backend.Progress) error) error {
	blamed := provider
	if limit.budget <= 0 {
		blamed = "" // a step without a budget never gives up
	}
	ctx, c := a.startClock(parent, PassBound, blamed)
	defer c.stop()
	err := do(ctx, c.progress)
	switch {
	case err == nil:
		return nil
	case stopping(parent):
		return err
	case parent.Err() != nil:
		return temporal.NewCanceledError(failureOf(provider, err))
	}
	f := failureOf(provider, err)
	if limit.budget <= 0 {
		return c.retryPass(parent, f, removalDelay)
	}
	if f.Code.Row().Final {
		return refused(f, err)
	}
	c.pauseDuringFault(parent, errors.Is(err, backend.ErrUnreachable))
	if budget, exceeded := limit.usedUp(c); exceeded {
		return budgetExceeded(f, budget)
	}
	return c.retryPass(parent, f, stepDelay)
}
