// Package choice chooses among offers. It answers which provider a scale-out asks, which of them a group keeps peered,
// what a node costs there, and how much room there is, each from the offers and what is known to be taken of them.
// It is pure, keeps nothing and orders thousands of candidates alike each time, so activities, servers and the CLI ask
// the same questions and get the same answers.
package choice
