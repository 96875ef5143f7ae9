package discovery

import (
	"context"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Catalog lists the providers that offer capacity now. The step Discover of a scale-out uses it.
type Catalog interface {
	// Offers returns the valid offers, each with Provider and Epoch set, at most one per provider, in name order, and a
	// Problem for each omitted offer. It blocks on the network for a bounded time (see Options). An error means that the
	// offers are unknown. No offers and no error mean that no provider offers capacity. Offers is safe for concurrent use,
	// and the caller may change the result.
	Offers(ctx context.Context) (offers []fleet.Offer, problems []Problem, err error)
}

// Source lists the offers of one origin, such as a file.
type Source interface {
	// Name returns the name of the source in Problems, such as "file" or "secrets".
	Name() string
	// List returns the offers as written, without Epoch, in name order, each name once, and a Problem for each unreadable
	// offer. Resolve checks a non-empty Provider of an offer. List is safe for concurrent use, and the caller may change
	// the result.
	List(ctx context.Context) (offers []fleet.Offer, problems []Problem, err error)
}

// Claimant marks a Source whose writers are not trusted. Resolve verifies the Provider of its offers, but does not
// treat it as a declaration by the owner of this cluster (see claims.go).
type Claimant interface{ Claims() bool }

// Identifier reads the id of the cluster to which credentials lead. backend.Peerings implements it.
type Identifier interface {
	Identify(ctx context.Context, credentials fleet.Credentials) (id string, err error)
}
