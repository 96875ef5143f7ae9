// Package money adds up the costs of nodes. From rates and times alone it computes the costs by day, month and
// provider, the amount that may still be spent, and the limits that have been reached. It is pure and does not depend
// on groups and offers. Sums use millionths and whole seconds, so the number of additions does not change them.
package money
