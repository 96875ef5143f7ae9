package discovery

import (
	"context"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Catalog lists the providers that offer capacity now, for Discover.
type Catalog interface {
	// Offers returns the valid offers, each with Provider and Epoch set, at most one per provider, in name order, and a
	// Problem for each omitted offer. It blocks on the network for a bounded time (see Options). An error means that the
	// offers are unknown; no offers and no error means that no provider offers capacity. Safe for concurrent use; the
	// caller may change the result.
	Offers(ctx context.Context) (offers []fleet.Offer, problems []Problem, err error)
}

// Source lists the offers that are written in one place.
type Source interface {
	// Name returns the name of the source in Problems, such as "file" or "secrets".
	Name() string
	// List returns the offers as written, without Epoch, in name order, each name once, and a Problem for each unreadable
	// offer. A non-empty Provider is a claim that Resolve checks. Safe for concurrent use; the caller owns the result.
	List(ctx context.Context) (offers []fleet.Offer, problems []Problem, err error)
}

// Claimant marks a Source whose writers are not trusted: Resolve verifies an offer's Provider and never counts it as a
// declaration.
type Claimant interface{ Claims() bool }

// Identifier reads the id of the cluster to which the credentials lead. backend.Peerings implements it.
type Identifier interface {
	Identify(ctx context.Context, credentials fleet.Credentials) (id string, err error)
}
