package client

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Providers is the provider entities, as the activities use them.
type Providers struct{ base }

// NewProviders makes the Providers of a hub; the task queue is named as Hub.TaskQueue has it.
func NewProviders(t Temporal, hub workflows.Hub, taskQueue string) *Providers {
	return &Providers{newBase(t, hub, taskQueue)}
}

func (p *Providers) provider(name string) (id string) { return p.hub.ID(workflows.ProviderID(name)) }

// Acquire books a hold, and starts the provider's entity when it does not run. Idempotent by key.
func (p *Providers) Acquire(ctx context.Context, provider, key string, shape corev1.ResourceList, offer fleet.Offer) (fleet.Hold, error) {
	var h fleet.Hold
	err := p.send(ctx, provider, workflows.UpdateAcquire, workflows.AcquireRequest{Key: key, Shape: shape, Offer: offer}, &h)
	return h, err
}

// Release gives a hold back. Idempotent by key; it starts the entity too, so that the tombstone is kept.
func (p *Providers) Release(ctx context.Context, provider, key string) error {
	return p.send(ctx, provider, workflows.UpdateRelease, workflows.HoldRequest{Key: key}, nil)
}

func (p *Providers) send(ctx context.Context, provider, name string, arg, result any) error {
	ctx, cancel := context.WithTimeout(ctx, defaultDeadline)
	defer cancel()
	id := p.provider(provider)
	return p.update(ctx, id, name, "", arg, result, p.entity(id, "provider "+provider), workflows.TypeProvider, workflows.ProviderInput{Provider: provider})
}

// Status reads the provider's state as last published. Needs no worker.
func (p *Providers) Status(ctx context.Context, provider string) (fleet.ProviderState, error) {
	var s fleet.ProviderState
	if err := p.read(ctx, p.provider(provider), &s); err != nil {
		return fleet.ProviderState{}, err
	}
	return s, nil
}

// Waits reads what peering/<provider> waits for from its activity's last heartbeat; empty when there is none. Needs no worker.
func (p *Providers) Waits(ctx context.Context, provider string) (stage, message string, err error) {
	return p.waits(ctx, p.hub.ID(workflows.PeeringID(provider)))
}

// Ensure starts the provider's entity when it does not run, and tells whether it did.
func (p *Providers) Ensure(ctx context.Context, provider string) (started bool, err error) {
	if _, err = p.Status(ctx, provider); err == nil {
		return false, nil
	}
	id := p.provider(provider)
	if _, err = p.temporal.ExecuteWorkflow(ctx, *p.entity(id, "provider "+provider), workflows.TypeProvider, workflows.ProviderInput{Provider: provider}); err != nil {
		return false, p.wall(id, err)
	}
	return true, nil
}

// Broken signals the provider's entity that its peering does not work. One that does not run has nothing to repair.
func (p *Providers) Broken(ctx context.Context, provider string) error {
	id := p.provider(provider)
	err := p.wall(id, p.temporal.SignalWorkflow(ctx, id, "", workflows.SignalBroken, nil))
	if errors.Is(err, fleet.ErrUnavailable) {
		return nil
	}
	return err
}
