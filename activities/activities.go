// Package activities holds the steps of the machine: what workflows ask the outside world for. Each is ensure-style, may
// run twice or be cut anywhere, heartbeats while it waits, and speaks fleet.Failure when it fails (errors.go).
package activities

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// Names under which the activities are registered. They are in histories: never rename one.
const (
	NameDiscover           = "Discover"
	NameSelect             = "Select"
	NamePeer               = "Peer"
	NameWaitForVirtualNode = "WaitForVirtualNode"
	NameDrain              = "Drain"
	NameUnpeer             = "Unpeer"
	NameEstablishPeering   = "EstablishPeering"
	NameRemovePeering      = "RemovePeering"
	NameRecoverGroup       = "RecoverGroup"
	NameRecoverProvider    = "RecoverProvider"
)

// Catalog lists who lends. It blocks for the time its sources need, and reports offers it had to skip as problems.
type Catalog interface {
	Offers(ctx context.Context) ([]fleet.Offer, []discovery.Problem, error)
}

// Holds is the provider entities as activities use them. Both mutations are idempotent by key and start the entity when
// it does not run; Status needs no worker.
type Holds interface {
	// Acquire books the attempt's hold on the provider.
	Acquire(ctx context.Context, provider, key string, shape corev1.ResourceList, offer fleet.Offer) (fleet.Hold, error)
	// Release gives it back, and keeps a late acquire of the same key from succeeding.
	Release(ctx context.Context, provider, key string) error
	// Broken tells the provider that its peering does not work, so that it is repaired. It does not wait for that.
	Broken(ctx context.Context, provider string) error
	// Waits tells what the workflow that makes or repairs the provider's peering waits for, as it last said; empty when none
	// runs or it has said nothing yet. The message has the other side's own words where there are any.
	Waits(ctx context.Context, provider string) (stage, message string, err error)
	// Status returns the provider's state as last published; fleet.ErrUnavailable when it does not run.
	Status(ctx context.Context, provider string) (fleet.ProviderState, error)
	// Listed returns the state of every provider whose entity runs, as Temporal's list has it, a moment old: what started or
	// changed just now may be missed.
	Listed(ctx context.Context) ([]fleet.ProviderState, error)
}

// Activities are the steps with what they need.
type Activities struct {
	Catalog Catalog
	Backend backend.Backend
	Holds   Holds
	// PollInterval is how often Peer looks at its hold; 0 means 500ms.
	PollInterval time.Duration
	// Now is the worker's clock, used only to leave out expired offers; nil means time.Now.
	Now func() time.Time
}

func (a *Activities) now() time.Time {
	if a.Now == nil {
		return time.Now()
	}
	return a.Now()
}
