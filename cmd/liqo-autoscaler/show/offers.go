package show

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/natsort"
)

// Offers is the output document of `offers`. It has one entry for each provider, sorted by the names of the offers.
type Offers struct {
	Offers []Offer `json:"offers"`
	// Problems are the offers that their source had to omit, with the reasons. They are set only if a source was
	// read.
	Problems []string `json:"problems,omitempty"`
}

// Offer contains the offer of one provider, and the amounts that holds (reservations for single attempts) use. It
// omits the credentials.
type Offer struct {
	// Name is the offer's name in its source, or the provider's id when no offer is known.
	Name string `json:"name"`
	// Provider is the Liqo cluster id.
	Provider string `json:"provider"`
	// Current reports whether a source has the offer now. It is null if no source was read.
	Current  *bool               `json:"current,omitempty"`
	Lendable corev1.ResourceList `json:"lendable,omitempty"`
	MaxNodes int                 `json:"maxNodes,omitempty"`
	// LargestNodes are the sizes of the provider's largest nodes. A new node must fit into at least one of these
	// sizes.
	LargestNodes []corev1.ResourceList `json:"largestNodes,omitempty"`
	Labels       map[string]string     `json:"labels,omitempty"`
	// Price is the price per node and hour. If it is 0, Prices applies.
	Price float64 `json:"price"`
	// Prices are prices per hour and CPU, GiB, or unit of any other resource.
	Prices map[corev1.ResourceName]float64 `json:"prices,omitempty"`
	// Currency is the currency of Price and Prices; empty means the node groups' currency.
	Currency string `json:"currency,omitempty"`
	// Unused is the reason for which no node group can use the offer, independently of the offer's amounts.
	Unused  string     `json:"unused,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	// Held is the sum of the waiting and granted holds. HeldNodes is their number.
	Held      corev1.ResourceList `json:"held,omitempty"`
	HeldNodes int                 `json:"heldNodes"`
	Holds     []Hold              `json:"holds,omitempty"`
	// Peering is the phase of the peering with the provider. Since is the time when it entered the phase.
	Peering fleet.PeeringPhase `json:"peering"`
	Since   time.Time          `json:"since,omitzero"`
	// Refusing is the provider's refusal of this cluster, while it is in effect.
	Refusing *fleet.ProviderRefusal `json:"refusing,omitempty"`
	// Cordoned is the time at which an operator cordoned the provider; null when it is not cordoned.
	Cordoned *time.Time `json:"cordoned,omitempty"`
	// Failure is the last failure of the peering.
	Failure *fleet.Failure `json:"failure,omitempty"`
	// Condition is the fault of the provider that the observer has found.
	Condition *Condition `json:"condition,omitempty"`
	// Waits is the event for which the removal of the peering waits, or "" if the peering is not being removed.
	Waits string `json:"waits,omitempty"`
}

// Hold is the amount of an offer that is reserved for one attempt to create a node.
type Hold struct {
	Node  string          `json:"node"` // the attempt's object name
	State fleet.HoldState `json:"state"`
}

// OffersOf combines the known providers with the present offers of a source. The parameter offered is nil if no
// source was read. The parameter group is any running node group, or nil if none runs; it supplies the currency,
// which is the same for all groups.
func OffersOf(providers []fleet.ProviderSnapshot, offered []fleet.Offer, group *fleet.GroupSpec) Offers {
	byProvider := map[string]Offer{}
	for _, p := range providers {
		o := providerOf(p)
		if offered != nil {
			o.Current = new(false)
		}
		byProvider[p.ID] = o
	}
	for _, offer := range offered {
		o, known := byProvider[offer.Provider]
		if !known {
			o = Offer{Provider: offer.Provider, Peering: fleet.Absent}
		}
		o.setOffer(offer)
		if group != nil {
			o.Unused = choice.Incomparable(group.InstanceSpec, offer)
		}
		o.Current = new(true)
		byProvider[offer.Provider] = o
	}
	all := slices.SortedFunc(maps.Values(byProvider), func(a, b Offer) int {
		return cmp.Or(natsort.Compare(a.Name, b.Name), natsort.Compare(a.Provider, b.Provider))
	})
	if all == nil {
		all = []Offer{}
	}
	return Offers{Offers: all}
}

// Waiting adds the events for which the removals of peerings wait. The keys of the map removals are the providers,
// and its values are these events.
func (o Offers) Waiting(removals map[string]string) Offers {
	for n := range o.Offers {
		o.Offers[n].Waits = removals[o.Offers[n].Provider]
	}
	return o
}

func (o *Offer) setOffer(offer fleet.Offer) {
	o.Name, o.Lendable, o.MaxNodes, o.Labels = offer.Name, offer.Lendable, offer.MaxNodes, offer.Labels
	o.LargestNodes = offer.LargestNodes
	o.Price, o.Prices, o.Currency, o.Expires = offer.Price, offer.Prices, offer.Currency, offer.Expires
}

func providerOf(p fleet.ProviderSnapshot) Offer {
	o := Offer{Name: p.ID, Provider: p.ID, Peering: p.Phase, Since: p.Since.UTC(), Failure: p.Failure,
		Refusing: p.Refusing, Held: corev1.ResourceList{}}
	if p.Offer != nil {
		o.setOffer(*p.Offer)
	}
	o.Condition = conditionOf(p)
	if c := cordonOf(p); c != nil {
		o.Cordoned = &c.Since
	}
	for name, whole := range o.Lendable {
		held := whole.DeepCopy()
		if held.Sub(p.Free[name]); held.Sign() != 0 {
			o.Held[name] = held
		}
	}
	o.HeldNodes = len(p.Holds)
	for _, key := range p.Holds {
		state := fleet.HoldGranted
		if slices.Contains(p.Waiting, key) {
			state = fleet.HoldWaiting
		}
		o.Holds = append(o.Holds, Hold{Node: key, State: state})
	}
	return o
}

// Table prints one row per provider.
func (o Offers) Table(out io.Writer, style output.Style) error {
	if len(o.Offers) == 0 {
		_, err := io.WriteString(out, "No provider is known.\n")
		return err
	}
	header := []string{"NAME", "PROVIDER", "LENDABLE", "NODES", "HELD", "PRICE", "PEERING", "AGE", "CURRENT"}
	if style.Wide {
		header = append(header, "EXPIRES", "LABELS", "WHY")
	}
	return style.Table(out, header, output.Rows(o.Offers, func(p Offer) []string {
		row := []string{p.Name, p.Provider, resources(style, p.Lendable), p.nodes(), resources(style, p.Held),
			p.price(), p.peering(), style.Age(p.Since), p.current()}
		if style.Wide {
			row = append(row, p.expires(style), labels(p.Labels), p.why())
		}
		return row
	}), "AGE", "HELD")
}

// current renders whether the offer exists now. A provider that was used stays in the list after its offer is
// removed.
func (o Offer) current() string {
	if o.Current == nil {
		return "unknown"
	}
	return strconv.FormatBool(*o.Current)
}

// nodes renders the number of held nodes, and their maximum if the offer has one.
func (o Offer) nodes() string {
	if o.MaxNodes == 0 {
		return strconv.Itoa(o.HeldNodes)
	}
	return strconv.Itoa(o.HeldNodes) + "/" + strconv.Itoa(o.MaxNodes)
}

// price renders the price per node or, if the offer has none, the prices by resource.
func (o Offer) price() string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
	if o.Price > 0 || len(o.Prices) == 0 {
		return strings.TrimSpace(number(o.Price) + " " + o.Currency)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(o.Prices)) {
		parts = append(parts, string(name)+"="+number(o.Prices[name]))
	}
	return strings.TrimSpace(strings.Join(parts, ",") + " " + o.Currency)
}

// peering renders the phase of the peering. It marks a cordoned provider as kubectl marks cordoned nodes.
func (o Offer) peering() string {
	if o.Cordoned != nil {
		return string(o.Peering) + "," + conditionCordoned
	}
	return string(o.Peering)
}

func (o Offer) expires(style output.Style) string {
	switch {
	case o.Expires == nil:
		return "never"
	case o.Expires.Before(style.Now):
		return "expired"
	default:
		return "in " + output.Style{Now: *o.Expires}.Age(style.Now)
	}
}

func (o Offer) why() string {
	switch {
	case o.Refusing != nil:
		text := "refuses this cluster"
		if !o.Refusing.Until.IsZero() {
			text += " until " + o.Refusing.Until.UTC().Format(time.RFC3339)
		}
		return text + ": " + o.Refusing.Reason
	case o.Waits != "":
		return "waiting for " + o.Waits
	case o.Unused != "":
		return "not used: " + o.Unused
	case o.Condition != nil:
		return o.Condition.Name + ": " + o.Condition.Message
	case o.Failure != nil:
		return string(o.Failure.Code) + ": " + o.Failure.Message
	}
	return ""
}

func labels(of map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, key+"="+of[key])
	}
	return strings.Join(parts, ",")
}
