package fleet

import (
	"cmp"
	"encoding/json"
	"time"
)

// Provider identifies a provider of nodes by its id, and refers to its credentials. The id of a cluster is its Liqo
// cluster id.
type Provider struct {
	ID          string      `json:"id"`
	Credentials Credentials `json:"credentials"`
	// Network describes the network settings of the provider's offer; nil means the defaults.
	Network *Network `json:"network,omitempty"`
	// Refusing is the provider's refusal that the consumer cluster has recorded. It is set only in the list of
	// peerings.
	Refusing *ProviderRefusal `json:"refusing,omitempty"`
}

// ProviderRefusal records that a provider refuses new nodes of this cluster altogether. The refusal is in effect
// until the provider ends it or it expires.
type ProviderRefusal struct {
	Kind RefusingKind `json:"kind"`
	// Reason is a sentence, with the provider's own text if it has given one.
	Reason string `json:"reason"`
	// Until is the time at which the refusal expires; if zero, it lasts until the provider ends it.
	Until time.Time `json:"until,omitzero"`
}

// RefusingKind names the action by which a provider refuses this cluster.
type RefusingKind string

// These constants are the kinds of refusals.
const (
	RefusingCordoned RefusingKind = "Cordoned" // it accepts no new nodes; the existing nodes stay
	RefusingDrained  RefusingKind = "Drained"  // it has withdrawn all its capacity, also from existing nodes
	RefusingRemoved  RefusingKind = "Removed"  // it has removed its part of the peering
)

// Over reports whether the refusal has expired.
func (r ProviderRefusal) Over(now time.Time) bool { return !r.Until.IsZero() && !now.Before(r.Until) }

// from returns the provider that makes the offer. It returns the zero value for a nil offer.
func (o *Offer) from() (p Provider) {
	if o != nil {
		p = Provider{ID: o.Provider, Credentials: o.Credentials, Network: o.Network}
	}
	return p
}

// Attempt identifies one try to make an instance's node on one Provider. The names of all objects of the try are
// derived from the Attempt.
type Attempt struct {
	Group    string   `json:"group"`
	Instance string   `json:"instance"`
	Number   int      `json:"number"`
	Provider Provider `json:"provider"`
}

// ObjectName returns the name of the attempt's Node. The names of the attempt's other objects contain it.
func (a Attempt) ObjectName() string { return ObjectName(a.Instance, a.Number) }

// InstanceID returns the id of the instance. Join writes this id into the Node's providerID.
func (a Attempt) InstanceID() string { return InstanceID(a.Group, a.Instance) }

// Booking contains the values that recovery needs to rebuild an instance from its objects alone.
type Booking struct {
	Spec     InstanceSpec `json:"spec,omitzero"`
	BookedAt time.Time    `json:"bookedAt"`
	// Hourly is the hourly price of the attempt's offer.
	Hourly float64 `json:"hourly,omitempty"`
}

// Found reports which objects of one attempt exist on the consumer. It also describes the state of these objects.
type Found struct {
	Attempt     Attempt  `json:"attempt"`
	Booking     *Booking `json:"booking,omitempty"` // from the virtual node; nil when it is missing or unreadable
	Slice       bool     `json:"slice"`
	Virtual     bool     `json:"virtualNode"`
	Marked      bool     `json:"marked"` // the VirtualNode has the annotation that Join writes first
	Node        bool     `json:"node"`
	Stamped     bool     `json:"stamped"`     // the Node's providerID is the instance id
	Ready       bool     `json:"ready"`       // the Node's Ready condition is True
	Cordoned    bool     `json:"cordoned"`    // we cordoned the Node because its provider accepts nothing new
	Terminating bool     `json:"terminating"` // one of the three objects is terminating
	// Starting reports that the Node still has the taint that Kubernetes sets on a new Node. Only Join uses it; it is
	// not serialized.
	Starting bool `json:"-"`
	// Kept reports that we have set CA's annotation scale-down-disabled on the Node, because volumes are on its
	// provider. KeptByOthers reports that another party has set it. Only the observer uses the two fields; they are
	// not serialized.
	Kept, KeptByOthers bool `json:"-"`
	// Differs lists how a Ready and stamped Node differs from the template that CA received for it, see
	// template.Differs. Users see the list. It affects no decision, and is not serialized.
	Differs []string `json:"-"`
}

// Founds is a list that is serialized in compressed form. A thousand entries with the specs of their bookings would
// exceed the 2 MiB that Temporal accepts as one payload.
type Founds []Found

// MarshalJSON returns the list as a JSON string of compressed JSON.
func (f Founds) MarshalJSON() ([]byte, error) {
	packed, err := Encode([]Found(f))
	if err != nil {
		return nil, err
	}
	return json.Marshal(packed)
}

// UnmarshalJSON reads the result of MarshalJSON.
func (f *Founds) UnmarshalJSON(text []byte) error {
	var packed []byte
	if err := json.Unmarshal(text, &packed); err != nil || packed == nil {
		return err
	}
	*f = nil
	return Decode(packed, (*[]Found)(f))
}

// Orphan describes an object that we made on a provider, and that has no counterpart on the consumer. The object is
// the slice of an attempt. If Attempt has no Instance, the Orphan describes the leftovers of a peering instead.
type Orphan struct {
	Attempt Attempt `json:"attempt"`
	// UID is the uid of the slice, or of the first leftover object of a peering.
	UID string `json:"uid"`
	// Object is a text that describes the object to users.
	Object string `json:"object"`
	// Foreign reports that the object names no owner, or was made by another cluster with the same Liqo id. A foreign
	// orphan is never removed.
	Foreign bool `json:"foreign,omitempty"`
	// Since is the time since which each sweep has found the orphan. A sweep is one search of the observer for
	// orphans.
	Since time.Time `json:"since,omitzero"`
	// KeptBecause is the reason for which the orphan is kept; "" when the observer tries to remove it.
	KeptBecause string `json:"keptBecause,omitempty"`
}

// OfPeering reports whether the orphan is the leftover of a peering.
func (o Orphan) OfPeering() bool { return o.Attempt.Instance == "" }

// Compare orders orphans by provider. For one provider it orders them by object name, with the leftovers of a peering
// last.
func (o Orphan) Compare(other Orphan) int {
	return cmp.Or(cmp.Compare(o.Attempt.Provider.ID, other.Attempt.Provider.ID),
		map[bool]int{true: 1}[o.OfPeering()]-map[bool]int{true: 1}[other.OfPeering()], cmp.Compare(o.Object, other.Object))
}
