package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Class is the class of the slices that the agent grants or denies. Liqo answers only slices of its own class.
const Class = "liqo-autoscaler"

// Tenant holds the fields of a consumer's Liqo Tenant.
type Tenant struct {
	ClusterID string
	Condition string // Active, Cordoned or Drained
}

// Decision is the answer to a slice: a grant of the requested amounts, or a denial with a reason.
type Decision struct {
	Granted         bool
	Reason, Message string
}

// These constants are the reasons of a Decision.
const (
	reasonGranted  = "ResourceSliceResourcesAccepted" // the reason that Liqo uses
	reasonFull     = string(fleet.CodeNoCapacity)     // consumers evaluate this reason
	reasonLarger   = "LargerThanAnyNode"
	reasonInvalid  = "InvalidResources"
	reasonUnknown  = "NotOffered"
	reasonRefusing = "TenantNotActive"
	reasonTooMany  = "TooManySlices"
)

// Waits reports whether the agent must answer the slice now. This is the case when Liqo has accepted the slice's
// authentication and the slice has no answer yet.
func (s Slice) Waits() bool {
	return s.Incoming() && s.Spec.Class == Class && s.DeletionTimestamp == nil &&
		s.condition(conditionAuthentication) == accepted && s.condition(conditionResources) == ""
}

// maxSlices bounds the number of granted slices of one consumer. This also bounds the size of the record of grants.
const maxSlices = 500

// Judge decides whether to grant a waiting slice. It compares the slice with the capacity that the granted slices in
// w leave free. Therefore w must also contain the grants that were decided earlier in the same round.
func (c Config) Judge(w World, s Slice, tenant Tenant) Decision {
	if tenant.Condition != tenantActive {
		return Decision{Reason: reasonRefusing, Message: "the Tenant of " + tenant.ClusterID + " is " + tenant.Condition}
	}
	at := c.first(tenant.ClusterID)
	if at < 0 {
		return Decision{Reason: reasonUnknown, Message: "there is no offer to " + tenant.ClusterID}
	}
	if s.unreadable {
		return Decision{Reason: reasonInvalid, Message: "the requested amounts cannot be parsed"}
	}
	asks := s.Spec.Resources
	for _, name := range slices.Sorted(maps.Keys(asks)) {
		if amount := asks[name]; amount.Sign() < 0 {
			return Decision{Reason: reasonInvalid, Message: fmt.Sprintf("%s must not be negative", name)}
		}
	}
	free := w.Free(Holder{}, c.Reserve)
	if missing := missing(free, asks); missing != "" {
		return Decision{Reason: reasonFull, Message: "not free on this provider: " + missing}
	}
	if !c.Offers[at].AllowAggregate && !w.hasNode(asks) {
		return Decision{Reason: reasonLarger, Message: "no single node of this provider has " + renderList(asks) +
			": request a smaller node, or ask the provider to set allowAggregate"}
	}
	if beyond := c.exceedsOffer(w, s, c.Offers[at]); beyond != nil {
		return *beyond
	}
	return Decision{Granted: true, Reason: reasonGranted, Message: "granted by liqo-autoscaler"}
}

// exceedsOffer returns a denial if the slice exceeds the offer to its consumer. Otherwise it returns nil.
func (c Config) exceedsOffer(w World, s Slice, o OfferConfig) *Decision {
	left, held := c.bound(w, o), 0
	for _, other := range w.Slices {
		if other.Namespace == s.Namespace && other.Granted() != nil {
			subtract(left, other.Granted())
			held++
		}
	}
	if held >= maxSlices {
		return &Decision{Reason: reasonTooMany, Message: fmt.Sprintf("%s has %d slices, the maximum for one consumer",
			o.Consumer, held)}
	}
	bounded := maps.Clone(s.Spec.Resources)
	maps.DeleteFunc(bounded, func(name corev1.ResourceName, _ resource.Quantity) bool { return !has(left, name) })
	if missing := missing(left, bounded); missing != "" {
		return &Decision{Reason: reasonFull, Message: "more than the offer to " + o.Consumer + ": " + missing}
	}
	return nil
}

// hasNode reports whether there is a node that would have the requested amounts if it were empty: a usable node, or a
// node that the autoscaler adds (GrowsNode). A pod that requests a whole virtual node can start only on such a node.
func (w World) hasNode(asks corev1.ResourceList) bool {
	if len(w.GrowsNode) > 0 && missing(w.GrowsNode, asks) == "" {
		return true
	}
	_, each := w.allocatable()
	for _, has := range each {
		if missing(has, asks) == "" {
			return true
		}
	}
	return false
}

// renderList returns the amounts as a text such as "cpu 2, memory 4Gi".
func renderList(amounts corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		parts = append(parts, string(name)+" "+amount.String())
	}
	return strings.Join(parts, ", ")
}

// missing compares the present amounts (has) with the requested amounts. It returns a text with the amounts that are
// too low, such as "cpu 1 of 2": 1 is present and 2 are requested. It returns "" when all amounts are sufficient.
func missing(has, asks corev1.ResourceList) string {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(asks)) {
		want, is := asks[name], has[name]
		if is.Cmp(want) < 0 {
			missing = append(missing, fmt.Sprintf("%s %s of %s", name, is.String(), want.String()))
		}
	}
	return strings.Join(missing, ", ")
}
