// Package choice chooses among offers. From the offers and the capacity that is known to be taken it decides which
// provider a scale-out requests, which providers a group keeps peered, what price a node has there, and how many nodes
// fit. It is pure, keeps no state and orders thousands of candidates the same way each time. Therefore activities,
// servers and the CLI get the same results.
package choice
