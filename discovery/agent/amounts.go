package agent

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// add increases the amounts in the first map by the positive amounts in the second map. It ignores negative amounts,
// which a consumer may have written.
func add(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := to[name].DeepCopy()
		if amount.Sign() > 0 {
			sum.Add(amount)
		}
		to[name] = sum
	}
}

// subtract reduces the amounts in the first map by the positive amounts in the second map. A resource that is absent
// from the first map stays absent. subtract ignores negative amounts, which a consumer may have written.
func subtract(from, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		if has, ok := from[name]; ok && amount.Sign() > 0 {
			has = has.DeepCopy()
			has.Sub(amount)
			from[name] = has
		}
	}
}

// positive returns copies of the amounts that are greater than zero.
func positive(amounts corev1.ResourceList) corev1.ResourceList {
	more := corev1.ResourceList{}
	for name, amount := range amounts {
		if amount.Sign() > 0 {
			more[name] = amount.DeepCopy()
		}
	}
	return more
}

// raise ensures that each amount in the first map is at least the amount in the second map. It raises lower amounts
// and adds absent ones.
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

// covers reports whether the amounts in the first map are sufficient for the requests.
func covers(has, requests corev1.ResourceList) bool {
	for name, want := range requests {
		if have := has[name]; want.Sign() > 0 && have.Cmp(want) < 0 {
			return false
		}
	}
	return true
}
