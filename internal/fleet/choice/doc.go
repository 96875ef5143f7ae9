// Package choice chooses among offers. The input consists of the offers and of the capacity that is known to be
// taken. The package chooses the provider of a scale-out, and the providers that a group keeps peered. It also
// computes the price of a node on each offer, and the number of nodes that fit. It is pure, keeps no state and always
// orders the same candidates in the same way. Therefore activities, servers and the CLI get the same results from the
// same input.
package choice
