package agent

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// add adds the positive amounts to to. Negative amounts, which a consumer may have written, are ignored.
func add(to, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		sum := to[name].DeepCopy()
		if amount.Sign() > 0 {
			sum.Add(amount)
		}
		to[name] = sum
	}
}

// subtract subtracts the positive amounts from from; resources that are absent in from stay absent. Negative amounts,
// which a consumer may have written, are ignored.
func subtract(from, amounts corev1.ResourceList) {
	for name, amount := range amounts {
		if has, ok := from[name]; ok && amount.Sign() > 0 {
			has = has.DeepCopy()
			has.Sub(amount)
			from[name] = has
		}
	}
}

// positive returns copies of the amounts that exceed zero.
func positive(amounts corev1.ResourceList) corev1.ResourceList {
	more := corev1.ResourceList{}
	for name, amount := range amounts {
		if amount.Sign() > 0 {
			more[name] = amount.DeepCopy()
		}
	}
	return more
}

// raise replaces each amount by the amount in least if that is larger.
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

// covers reports whether has contains at least the requested amount of each resource.
func covers(has, asks corev1.ResourceList) bool {
	for name, want := range asks {
		if have := has[name]; want.Sign() > 0 && have.Cmp(want) < 0 {
			return false
		}
	}
	return true
}
