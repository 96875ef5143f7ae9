package agent

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// add adds amounts to others. An amount that somebody has made negative changes nothing.
func add(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := to[name].DeepCopy()
		if amount.Sign() > 0 {
			sum.Add(amount)
		}
		to[name] = sum
	}
}

// subtract takes from what there is; what there is none of stays absent. An amount that somebody has made negative
// changes nothing.
func subtract(from, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		if has, ok := from[name]; ok && amount.Sign() > 0 {
			has = has.DeepCopy()
			has.Sub(amount)
			from[name] = has
		}
	}
}

// positive returns the amounts that are more than zero, of which nothing is shared with the original.
func positive(amounts corev1.ResourceList) corev1.ResourceList {
	more := corev1.ResourceList{}
	for name, amount := range amounts {
		if amount.Sign() > 0 {
			more[name] = amount.DeepCopy()
		}
	}
	return more
}

// raise raises each amount to at least the other one.
func raise(amounts, least corev1.ResourceList) {
	for name, amount := range least {
		if has, ok := amounts[name]; !ok || has.Cmp(amount) < 0 {
			amounts[name] = amount
		}
	}
}

// nonNegative replaces negative amounts by zero.
func nonNegative(amounts corev1.ResourceList) corev1.ResourceList {
	for name, amount := range amounts {
		if amount.Sign() < 0 {
			amounts[name] = *resource.NewQuantity(0, amount.Format)
		}
	}
	return amounts
}

// covers reports whether there is as much of each resource as is requested.
func covers(has, asks corev1.ResourceList) bool {
	for name, want := range asks {
		if have := has[name]; want.Sign() > 0 && have.Cmp(want) < 0 {
			return false
		}
	}
	return true
}
