package discovery

import (
	"context"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Catalog is what Discover asks: which providers offer capacity now.
type Catalog interface {
	// Offers returns the offers in force, each with Provider and Epoch set, at most one per provider, in name order, and
	// the Problems of those left out. It blocks on the network for a bounded time (see Options). An error means that
	// nothing can be said at all; no offers and no error means that no provider offers any. Safe for concurrent use; the
	// caller may change what it got.
	Offers(ctx context.Context) (offers []fleet.Offer, problems []Problem, err error)
}

// Source is one place where offers are written down.
type Source interface {
	// Name is the source's name in Problems, such as "file" or "secrets".
	Name() string
	// List returns the offers as written, without Epoch, in name order, each name once, and the Problems of those that
	// cannot be read. A non-empty Provider is a claim that Resolve checks. Safe for concurrent use; the result is the
	// caller's own.
	List(ctx context.Context) (offers []fleet.Offer, problems []Problem, err error)
}

// Claimant is a Source whose offers' Provider anybody may have written: it must be true, but it declares nothing.
type Claimant interface{ Claims() bool }

// Identifier reads the id of the cluster the credentials lead to. backend.Peerings is one.
type Identifier interface {
	Identify(ctx context.Context, credentials fleet.Credentials) (id string, err error)
}
