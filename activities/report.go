package activities

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// ReportInput contains the messages of a driver or a peering that Report delivers.
type ReportInput struct {
	Group    string               `json:"group,omitempty"`
	View     *fleet.View          `json:"view,omitempty"`
	Provider string               `json:"provider,omitempty"`
	Holds    []fleet.HoldRequest  `json:"holds,omitempty"`
	Report   *fleet.PeeringReport `json:"report,omitempty"`
}

// Report delivers a view, hold requests or a report of a peering. It returns once Temporal has stored them, and
// Temporal retries it until then. If a group does not run, the retries deliver the view after the group is started
// again.
func (a *Activities) Report(ctx context.Context, in ReportInput) error {
	var send errgroup.Group
	if in.View != nil {
		send.Go(func() error { return a.Messages.View(ctx, in.Group, *in.View) })
	}
	if len(in.Holds) > 0 && in.Provider != "" {
		send.Go(func() error { return a.Messages.Holds(ctx, in.Provider, in.Holds...) })
	}
	if in.Report != nil {
		send.Go(func() error {
			err := a.Messages.Report(ctx, in.Provider, *in.Report)
			if errors.Is(err, fleet.ErrNotRunning) {
				return nil // the entity inspects the existing objects when it starts again
			}
			return err
		})
	}
	err := send.Wait()
	if err == nil {
		a.recordReported(in)
	}
	return err
}

// Acquire returns the request for a hold that an instance sends to its current attempt's provider.
func Acquire(i *fleet.Instance) fleet.HoldRequest {
	at := i.AttemptRef()
	return acquire(at, *i.Spec, i.Offer)
}

func acquire(at fleet.Attempt, spec fleet.InstanceSpec, offer *fleet.Offer) fleet.HoldRequest {
	budgets := spec.Budgets.WithDefaults()
	return fleet.HoldRequest{
		Kind: fleet.HoldAcquire, Key: at.ObjectName(), Shape: spec.Shape, Offer: offer,
		Budget: budgets.Peer, NetworkBudget: budgets.Network,
	}
}
