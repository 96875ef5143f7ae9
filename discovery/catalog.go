package discovery

import (
	"context"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Catalog lists the providers that offer capacity now. The step Discover of a scale-out uses it.
type Catalog interface {
	// Offers returns the valid offers, ordered by name. It returns at most one offer per provider. Provider and Epoch
	// are set in each offer. For each omitted offer it returns a Problem. It makes requests that take a bounded time
	// (see Options). If it returns an error, the offers are unknown. If it returns no offers and no error, no
	// provider offers capacity. Offers is safe for concurrent use, and the caller may change the result.
	Offers(ctx context.Context) (offers []fleet.Offer, problems []Problem, err error)
}

// Source lists the offers of one origin, such as a file.
type Source interface {
	// Name returns the name of the source in Problems, such as "file" or "secrets".
	Name() string
	// List returns the offers as they are written, ordered by name and without Epoch. Each name occurs once. List
	// also returns a Problem for each unreadable offer. It need not set Provider; Resolve checks a Provider that is
	// set. List is safe for concurrent use, and the caller may change the result.
	List(ctx context.Context) (offers []fleet.Offer, problems []Problem, err error)
}

// Claimant is an optional interface of a Source. Claims returns true if the writers of the Source are not trusted.
// Resolve then compares the Provider of an offer with the id that the cluster reports, but does not treat Provider as
// a declaration by the owner of this cluster (see claims.go).
type Claimant interface{ Claims() bool }

// Identifier reads the id of the cluster to which credentials lead. backend.Peerings implements Identifier.
type Identifier interface {
	Identify(ctx context.Context, credentials fleet.Credentials) (id string, err error)
}
