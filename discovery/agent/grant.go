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

// Class is that of the slices which the agent grants or denies. Liqo leaves every class but its own to others.
const Class = "liqo-autoscaler"

// Tenant is a consumer as Liqo lets it in.
type Tenant struct {
	ClusterID string
	Condition string // Active, Cordoned or Drained
}

// Decision is the answer to a slice: granted as it requested, or denied with a reason.
type Decision struct {
	Granted         bool
	Reason, Message string
}

// The reasons of a Decision.
const (
	reasonGranted  = "ResourceSliceResourcesAccepted" // as Liqo says it
	reasonFull     = string(fleet.CodeNoCapacity)     // which consumers know
	reasonLarger   = "LargerThanAnyNode"
	reasonInvalid  = "InvalidResources"
	reasonUnknown  = "NotOffered"
	reasonRefusing = "TenantNotActive"
	reasonTooMany  = "TooManySlices"
)

// Waits reports whether the slice is ours to answer now: Liqo has let it in, and nobody has answered.
func (s Slice) Waits() bool {
	return s.Incoming() && s.Spec.Class == Class && s.DeletionTimestamp == nil &&
		s.condition(conditionAuthentication) == accepted && s.condition(conditionResources) == ""
}

// maxSlices is how many slices one consumer holds at most, which bounds the record of grants.
const maxSlices = 500

// Judge answers a slice that waits. What is granted to anybody counts; the slices of w must say so already.
func (c Config) Judge(w World, s Slice, tenant Tenant) Decision {
	if tenant.Condition != tenantActive {
		return Decision{Reason: reasonRefusing, Message: "the Tenant of " + tenant.ClusterID + " is " + tenant.Condition}
	}
	at := c.first(tenant.ClusterID)
	if at < 0 {
		return Decision{Reason: reasonUnknown, Message: "nothing is offered to " + tenant.ClusterID}
	}
	if s.unreadable {
		return Decision{Reason: reasonInvalid, Message: "what it asks for cannot be read"}
	}
	asks := s.Spec.Resources
	for _, name := range slices.Sorted(maps.Keys(asks)) {
		if amount := asks[name]; amount.Sign() < 0 {
			return Decision{Reason: reasonInvalid, Message: fmt.Sprintf("%s must not be negative", name)}
		}
	}
	free := w.Free(Holder{}, c.Reserve)
	if missing := lacking(free, asks); missing != "" {
		return Decision{Reason: reasonFull, Message: "not free here: " + missing}
	}
	if !c.Offers[at].AllowAggregate && !w.hasNode(asks) {
		return Decision{Reason: reasonLarger, Message: "no single node here has " + listed(asks) +
			": request a smaller node, or have the provider set allowAggregate"}
	}
	if beyond := c.beyond(w, s, c.Offers[at]); beyond != nil {
		return *beyond
	}
	return Decision{Granted: true, Reason: reasonGranted, Message: "granted by liqo-autoscaler"}
}

// beyond is the denial of a slice that is more than the offer has for its consumer; nil when it is not.
func (c Config) beyond(w World, s Slice, o OfferConfig) *Decision {
	left, held := c.bound(w, o), 0
	for _, other := range w.Slices {
		if other.Namespace == s.Namespace && other.Granted() != nil {
			subtract(left, other.Granted())
			held++
		}
	}
	if held >= maxSlices {
		return &Decision{Reason: reasonTooMany, Message: fmt.Sprintf("%s holds %d slices, the most for one consumer",
			o.Consumer, held)}
	}
	bounded := maps.Clone(s.Spec.Resources)
	maps.DeleteFunc(bounded, func(name corev1.ResourceName, _ resource.Quantity) bool { return !has(left, name) })
	if missing := lacking(left, bounded); missing != "" {
		return &Decision{Reason: reasonFull, Message: "beyond what is offered to " + o.Consumer + ": " + missing}
	}
	return nil
}

// hasNode reports whether a usable node, or one that is added, has the amounts when it is empty: a pod that requests
// all of a virtual node starts on one node or nowhere.
func (w World) hasNode(asks corev1.ResourceList) bool {
	if len(w.GrowsNode) > 0 && lacking(w.GrowsNode, asks) == "" {
		return true
	}
	_, each := w.allocatable()
	for _, has := range each {
		if lacking(has, asks) == "" {
			return true
		}
	}
	return false
}

// listed writes amounts as "cpu 2, memory 4Gi".
func listed(amounts corev1.ResourceList) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		parts = append(parts, string(name)+" "+amount.String())
	}
	return strings.Join(parts, ", ")
}

// lacking says what of the asks there is not, as "cpu 1 of 2"; "" when there is all.
func lacking(has, asks corev1.ResourceList) string {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(asks)) {
		want, is := asks[name], has[name]
		if is.Cmp(want) < 0 {
			missing = append(missing, fmt.Sprintf("%s %s of %s", name, is.String(), want.String()))
		}
	}
	return strings.Join(missing, ", ")
}
