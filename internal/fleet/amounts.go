package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount is the quantity of one resource in a shape.
type Amount struct {
	Name corev1.ResourceName
	Want resource.Quantity
}

// AmountsOf returns the amounts of a shape, sorted by name.
func AmountsOf(shape corev1.ResourceList) (amounts []Amount) {
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		amounts = append(amounts, Amount{name, shape[name]})
	}
	return amounts
}

// Fits reports whether the resource is offered and the wanted amount is free. If free is nil, all offered capacity is
// free. If the offer has no entry for ephemeral storage, ephemeral storage is unlimited.
func (a *Amount) Fits(offered, free corev1.ResourceList) bool {
	if a.Want.Sign() <= 0 {
		return true
	}
	have, limited := offered[a.Name]
	if !limited {
		return a.Name == corev1.ResourceEphemeralStorage
	}
	if free != nil {
		have = free[a.Name]
	}
	return a.Want.Cmp(have) <= 0
}

// Lacks returns a text that explains why a shape does not fit into an offer's free capacity. It returns "" when the
// shape fits. If the offer has no entry for ephemeral storage, ephemeral storage is unlimited. Any other resource
// without an entry is not offered.
func Lacks(shape, offered, free corev1.ResourceList) string {
	var lacks []string
	for _, a := range AmountsOf(shape) {
		if a.Fits(offered, free) {
			continue
		}
		lack := "none is offered"
		if whole, limited := offered[a.Name]; limited {
			have := free[a.Name]
			lack = fmt.Sprintf("%s of %s is free", have.String(), whole.String())
		}
		lacks = append(lacks, fmt.Sprintf("needs %s %s, %s", a.Name, a.Want.String(), lack))
	}
	return strings.Join(lacks, "; ")
}
