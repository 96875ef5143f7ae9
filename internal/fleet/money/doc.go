// Package money adds up the costs of nodes. From rates and times alone it computes the costs by day, month and
// provider, the amount that may still be spent, and the limits that have been reached. It is pure and does not depend
// on groups and offers. Sums use whole millionths of the currency and whole seconds, so they do not depend on how
// often costs are added.
package money
