package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount is a resource of a shape.
type Amount struct {
	Name corev1.ResourceName
	Want resource.Quantity
}

// AmountsOf are the amounts of a shape, by name.
func AmountsOf(shape corev1.ResourceList) (amounts []Amount) {
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		amounts = append(amounts, Amount{name, shape[name]})
	}
	return amounts
}

// Fits reports whether it is offered, and as much of it free; free is all that is offered when it is nil.
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

// Lacks says in a sentence why a shape does not fit in what is free of an offer; "" when it fits. An offer that does
// not speak of ephemeral storage does not limit it; any other resource that it does not name is not offered.
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
