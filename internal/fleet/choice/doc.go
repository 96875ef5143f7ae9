// Package choice chooses among offers. From the offers and the capacity that is known to be taken it decides which
// provider a scale-out uses, which providers a group keeps peered, the price of a node on each offer, and how many
// nodes fit. It is pure, keeps no state and always orders the same candidates in the same way. Therefore activities,
// servers and the CLI get the same results.
package choice
