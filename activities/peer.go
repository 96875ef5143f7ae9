package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// PeerInput asks for a hold on an established peering.
type PeerInput struct {
	Attempt backend.Attempt     `json:"attempt"`
	Shape   corev1.ResourceList `json:"shape"`
	Offer   fleet.Offer         `json:"offer"`
}

// RefusedForCapacity is the error type of a refusal that carries, as its second detail, what is free.
const RefusedForCapacity = string(fleet.CodeNoCapacity)

// Peer acquires the attempt's hold on its provider and returns once it is granted, which means that the peering works.
// It waits on the provider entity, which shares one peering among all holds. Fails with the provider's own failure when
// the hold is refused.
func (a *Activities) Peer(ctx context.Context, in PeerInput) error {
	ctx, progress, stop := heartbeat(ctx)
	defer stop()
	provider, key := in.Attempt.Provider.ID, in.Attempt.ObjectName()
	hold := fleet.Hold{}
	every := a.PollInterval
	if every <= 0 {
		every = 500 * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		var err error
		if hold.State == fleet.HoldUnknown { // never booked, or the entity lost it: acquire is idempotent
			hold, err = a.Holds.Acquire(ctx, provider, key, in.Shape, in.Offer)
		} else {
			var state fleet.ProviderState
			if state, err = a.Holds.Status(ctx, provider); err == nil {
				hold = state.Holds[key]
				progress(backend.Stage("peering"), fmt.Sprintf("peering with %s is %s", provider, state.Phase))
			} else if errors.Is(err, fleet.ErrUnavailable) {
				hold = fleet.Hold{} // the entity does not run: nobody but the next acquire starts it
			}
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, fleet.ErrUnavailable) && !errors.Is(err, fleet.ErrOutcomeUnknown) {
			return wall(ctx, provider, fmt.Errorf("hold %s on provider %s: %w", key, provider, err))
		}
		switch hold.State {
		case fleet.HoldGranted:
			return nil
		case fleet.HoldRefused:
			return refusedHold(hold, provider)
		case fleet.HoldReleased:
			return failure(fleet.NewFailure(fleet.CodeCancelled, provider, "", "the attempt was given back already"), true)
		}
		select {
		case <-ctx.Done():
			if stopping(ctx) {
				return ctx.Err()
			}
			return failure(a.notEstablished(ctx, provider), true)
		case <-tick.C:
		}
	}
}

// notEstablished says what the peering waited for when the step ended, its time up or called off: it is shared, and goes on
// without this hold.
func (a *Activities) notEstablished(ctx context.Context, provider string) *fleet.Failure {
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	stage, message, err := a.Holds.Waits(look, provider)
	if err != nil || stage == "" {
		return fleet.NewFailure(fleet.CodeTimeout, provider, "peering", fmt.Sprintf("the peering with provider %s is not established", provider))
	}
	return fleet.NewFailure(fleet.CodeTimeout, provider, stage, fmt.Sprintf("not peered, waiting for %s: %s", stage, message))
}

func refusedHold(h fleet.Hold, provider string) error {
	f := h.Failure
	if f == nil {
		f = fleet.NewFailure(fleet.CodeRefused, provider, "", "refused")
	}
	return temporal.NewApplicationErrorWithOptions(f.Message, string(f.Code), temporal.ApplicationErrorOptions{
		NonRetryable: true, Details: []any{f, h.Free},
	})
}

// FreeOf reads what is free out of a refusal for capacity; nil when the error says nothing of it.
func FreeOf(err error) corev1.ResourceList {
	var app *temporal.ApplicationError
	var f fleet.Failure
	var free corev1.ResourceList
	if errors.As(err, &app) && app.Type() == RefusedForCapacity && app.HasDetails() && app.Details(&f, &free) == nil {
		return free
	}
	return nil
}

// PeeringInput names a provider.
type PeeringInput struct {
	Provider backend.Provider `json:"provider"`
}

// EstablishPeering makes the peering with a provider, or adopts what is there. Run by peering/<provider> only.
func (a *Activities) EstablishPeering(ctx context.Context, in PeeringInput) error {
	ctx, progress, stop := heartbeat(ctx)
	defer stop()
	activity.GetLogger(ctx).Info("establishing peering", "provider", in.Provider.ID)
	return wall(ctx, in.Provider.ID, a.Backend.Establish(ctx, in.Provider, progress))
}

// TypeInUse is the error type of RemovePeering when someone else uses the peering.
const TypeInUse = "InUse"

// RemovePeering removes the peering with a provider, if it is ours and nobody uses it (I11). Run by unpeering/<provider>
// only. Fails with TypeInUse, final, when it is in use.
func (a *Activities) RemovePeering(ctx context.Context, in PeeringInput) error {
	ctx, progress, stop := heartbeat(ctx)
	defer stop()
	err := a.Backend.Unpeer(ctx, a.current(ctx, in.Provider), progress)
	if errors.Is(err, backend.ErrInUse) {
		return temporal.NewNonRetryableApplicationError(err.Error(), TypeInUse, nil)
	}
	return wall(ctx, in.Provider.ID, err)
}

// current is the provider with the credentials that its offer names now: since the peering was made they may have moved,
// and a removal never gives up. Without an offer, or a catalog that answers, they stay.
func (a *Activities) current(ctx context.Context, p backend.Provider) backend.Provider {
	if offer := a.offerOf(ctx, p.ID); offer != nil {
		p.Credentials = offer.Credentials
	}
	return p
}
