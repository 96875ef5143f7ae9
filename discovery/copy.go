package discovery

import (
	"maps"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// CopyOffer is a deep copy, so that sources can hand out what they keep.
func CopyOffer(o fleet.Offer) fleet.Offer {
	o.Lendable = o.Lendable.DeepCopy()
	o.Labels, o.Prices = maps.Clone(o.Labels), maps.Clone(o.Prices)
	if o.Credentials.SecretRef != nil {
		ref := *o.Credentials.SecretRef
		o.Credentials.SecretRef = &ref
	}
	if o.LingerSeconds != nil {
		linger := *o.LingerSeconds
		o.LingerSeconds = &linger
	}
	if o.Network != nil {
		network := *o.Network
		network.Options = slices.Clone(network.Options)
		o.Network = &network
	}
	if o.Expires != nil {
		expires := *o.Expires
		o.Expires = &expires
	}
	return o
}
