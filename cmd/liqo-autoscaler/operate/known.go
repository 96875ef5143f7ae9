package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// statuses reads the state of a provider's workflow. It returns fleet.ErrNotRunning when the workflow does not run.
type statuses interface {
	Status(ctx context.Context, provider string) (fleet.ProviderSnapshot, error)
}

// namedInError is the maximum number of offers that an error lists.
const namedInError = 10

// providerOf returns the id of the provider with this id, or of the provider whose offer has this name. For an offer
// whose provider is not known yet, it returns the name. Without such an offer it also accepts the id of a provider
// whose workflow runs. For any other name it returns an error, or the name itself if the parameter unknown is true:
// an operator may cordon a provider before its first offer. The parameter offers is nil if the offers could not be
// read.
func providerOf(ctx context.Context, name string, offers []fleet.Offer, entities statuses,
	unknown bool) (string, error) {
	for _, o := range offers {
		if o.Name == name || o.Provider == name {
			return cmp.Or(o.Provider, name), nil
		}
	}
	_, err := entities.Status(ctx, name)
	if err == nil || unknown {
		return name, nil
	}
	if !errors.Is(err, fleet.ErrNotRunning) {
		return "", fmt.Errorf("read provider %s: %w", name, err)
	}
	return "", fmt.Errorf("no offer has the name %s, and no provider with this id is in use%s: --unknown accepts it "+
		"anyway",
		name, listed(offers))
}

// listed renders the names of offers for an error.
func listed(offers []fleet.Offer) string {
	if offers == nil {
		return " (the offers could not be read)"
	}
	var names []string
	for _, o := range offers {
		names = append(names, fmt.Sprintf("%s (%s)", o.Name, cmp.Or(o.Provider, "provider not known yet")))
	}
	slices.Sort(names)
	more := ""
	if len(names) > namedInError {
		names, more = names[:namedInError], fmt.Sprintf(" and %d more", len(names)-namedInError)
	}
	return "; offers: " + strings.Join(names, ", ") + more
}
