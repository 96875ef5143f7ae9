package discovery

import (
	"maps"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// CopyOffer returns a deep copy. A source that stores offers returns copies, because a caller may change them.
func CopyOffer(o fleet.Offer) fleet.Offer {
	o.Lendable = o.Lendable.DeepCopy()
	o.LargestNodes = slices.Clone(o.LargestNodes)
	for n, node := range o.LargestNodes {
		o.LargestNodes[n] = node.DeepCopy()
	}
	o.Labels, o.Prices = maps.Clone(o.Labels), maps.Clone(o.Prices)
	o.Credentials.SecretRef, o.LingerSeconds = copied(o.Credentials.SecretRef), copied(o.LingerSeconds)
	o.Network, o.Expires = copied(o.Network), copied(o.Expires)
	if o.Network != nil {
		o.Network.Options = slices.Clone(o.Network.Options)
	}
	return o
}

func copied[T any](what *T) *T {
	if what == nil {
		return nil
	}
	return new(*what)
}
