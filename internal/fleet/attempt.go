package fleet

import (
	"cmp"
	"encoding/json"
	"time"
)

// Provider is who gives nodes: its id, of a cluster its Liqo cluster id, and where the access to it lies.
type Provider struct {
	ID          string      `json:"id"`
	Credentials Credentials `json:"credentials"`
	// Network is what its offer says of the network; nil means the default one.
	Network *Network `json:"network,omitempty"`
	// Refusing is what the consumer remembers of a refusal; only in the list of peerings.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
}

// ProviderRefusal is a provider's no to this cluster as a whole. It stays in force until the provider lifts it, or its
// time is over.
type ProviderRefusal struct {
	Kind RefusingKind `json:"kind"`
	// Reason is a sentence in the provider's words, as far as it has any.
	Reason string `json:"reason"`
	// Until is when it ends by itself; zero: only the provider lifts it.
	Until time.Time `json:"until,omitzero"`
}

// RefusingKind is how a provider refuses.
type RefusingKind string

// The kinds.
const (
	RefusingCordoned RefusingKind = "Cordoned" // it takes no new nodes; those that are there stay
	RefusingDrained  RefusingKind = "Drained"  // it has taken back all that it gave
	RefusingRemoved  RefusingKind = "Removed"  // it has removed its part of the peering
)

// Over reports whether its time is over.
func (r ProviderRefusal) Over(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// from is who makes the offer; the zero value without one.
func (o *Offer) from() (p Provider) {
	if o != nil {
		p = Provider{ID: o.Provider, Credentials: o.Credentials, Network: o.Network}
	}
	return p
}

// Attempt is one try of an instance on one Provider; it names every object of the try.
type Attempt struct {
	Group    string   `json:"group"`
	Instance string   `json:"instance"`
	Number   int      `json:"number"`
	Provider Provider `json:"provider"`
}

// ObjectName is the name of the attempt's Node, and in that of its other objects.
func (a Attempt) ObjectName() string { return ObjectName(a.Instance, a.Number) }

// InstanceID is what Join stamps on the Node as providerID.
func (a Attempt) InstanceID() string { return InstanceID(a.Group, a.Instance) }

// Booking is what recovery needs to rebuild an instance from its objects alone.
type Booking struct {
	Spec     InstanceSpec `json:"spec,omitzero"`
	BookedAt time.Time    `json:"bookedAt"`
	// Hourly is that of the attempt's offer.
	Hourly float64 `json:"hourly,omitempty"`
}

// Found is what exists of one attempt on the consumer.
type Found struct {
	Attempt     Attempt  `json:"attempt"`
	Booking     *Booking `json:"booking,omitempty"` // on the virtual node; nil when it is missing or unreadable
	Slice       bool     `json:"slice"`
	Virtual     bool     `json:"virtualNode"`
	Marked      bool     `json:"marked"`
	Node        bool     `json:"node"`
	Stamped     bool     `json:"stamped"`     // the Node's providerID is the instance id
	Ready       bool     `json:"ready"`       // the Node's Ready condition is True
	Cordoned    bool     `json:"cordoned"`    // the Node is cordoned by us because its provider takes nothing new
	Terminating bool     `json:"terminating"` // any of the three is terminating
	// Starting: Kubernetes' own taint of a new Node is still on it. Join's concern alone, and not on the wire.
	Starting bool `json:"-"`
	// Kept: the Node has CA's annotation scale-down-disabled from us, for volumes of its provider. KeptByOthers: another
	// party has set it. They concern the observer alone, and are not on the wire.
	Kept, KeptByOthers bool `json:"-"`
	// Differs is in what a Node that is Ready and stamped is not as its booking promised CA: template.Differs. It is for
	// people, decides nothing, and is not on the wire.
	Differs []string `json:"-"`
}

// Founds are many Found. On the wire they are compressed: a thousand that carry their bookings' specs would not fit in
// what Temporal takes as one payload (2 MiB).
type Founds []Found

// MarshalJSON implements json.Marshaler.
func (f Founds) MarshalJSON() ([]byte, error) {
	packed, err := Encode([]Found(f))
	if err != nil {
		return nil, err
	}
	return json.Marshal(packed)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Founds) UnmarshalJSON(text []byte) error {
	var packed []byte
	if err := json.Unmarshal(text, &packed); err != nil || packed == nil {
		return err
	}
	*f = nil
	return Decode(packed, (*[]Found)(f))
}

// Orphan is what is ours on a provider and has no counterpart on the consumer: the slice of an attempt, or, with an
// attempt that names no instance, what is left of a peering.
type Orphan struct {
	Attempt Attempt `json:"attempt"`
	// UID is the slice's, or that of the first thing left of a peering.
	UID string `json:"uid"`
	// Object names it, for people.
	Object string `json:"object"`
	// Foreign: another cluster that goes by this one's id has made it, or it does not say who has. It is never removed.
	Foreign bool `json:"foreign,omitempty"`
	// Since is when the first of the sweeps began that have seen it in a row.
	Since time.Time `json:"since,omitzero"`
	// KeptBecause is why it is not removed; "" when it was tried.
	KeptBecause string `json:"keptBecause,omitempty"`
}

// OfPeering reports whether it is what is left of a peering.
func (o Orphan) OfPeering() bool { return o.Attempt.Instance == "" }

// Compare orders orphans by provider and name, a peering last.
func (o Orphan) Compare(other Orphan) int {
	return cmp.Or(cmp.Compare(o.Attempt.Provider.ID, other.Attempt.Provider.ID),
		map[bool]int{true: 1}[o.OfPeering()]-map[bool]int{true: 1}[other.OfPeering()], cmp.Compare(o.Object, other.Object))
}
