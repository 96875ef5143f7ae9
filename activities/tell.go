package activities

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// TellInput is what a driver or a peering has to say that no step says for it.
type TellInput struct {
	Group    string               `json:"group,omitempty"`
	View     *fleet.View          `json:"view,omitempty"`
	Provider string               `json:"provider,omitempty"`
	Holds    []fleet.HoldRequest  `json:"holds,omitempty"`
	Report   *fleet.PeeringReport `json:"report,omitempty"`
}

// Tell delivers a view, hold requests or a report, and returns once they are durable. It is retried until then; a group
// that nobody runs hears of it when it is started again.
func (a *Activities) Tell(ctx context.Context, in TellInput) error {
	var tell errgroup.Group
	if in.View != nil {
		tell.Go(func() error { return a.Messages.View(ctx, in.Group, *in.View) })
	}
	if len(in.Holds) > 0 && in.Provider != "" {
		tell.Go(func() error { return a.Messages.Holds(ctx, in.Provider, in.Holds...) })
	}
	if in.Report != nil {
		tell.Go(func() error {
			err := a.Messages.Report(ctx, in.Provider, *in.Report)
			if errors.Is(err, fleet.ErrNotRunning) {
				return nil // it looks for itself when it is started
			}
			return err
		})
	}
	err := tell.Wait()
	if err == nil {
		a.showTold(in)
	}
	return err
}

// Acquire is what an instance asks its current attempt's provider for.
func Acquire(i *fleet.Instance) fleet.HoldRequest {
	at := i.AttemptRef()
	return acquire(at, *i.Spec, i.Offer)
}

func acquire(at fleet.Attempt, spec fleet.GroupSpec, offer *fleet.Offer) fleet.HoldRequest {
	budgets := spec.Budgets.WithDefaults()
	return fleet.HoldRequest{
		Kind: fleet.HoldAcquire, Key: at.ObjectName(), Shape: spec.Shape, Offer: offer,
		Budget: budgets.Peer, NetworkBudget: budgets.Network,
	}
}
