// Package agent runs in a provider cluster and offers what is free there: to each consumer of its config one offer,
// measured from the cluster's own nodes, pods and ResourceSlices, and kept at the discovery server while the agent
// lives.
//
//	nodes, pods, slices -> World -> Free -> offers -> Advertiser -> Sink (the discovery server)
//
// What is granted to a consumer counts whether it is used or not, and the pods that Liqo brings do not count again.
// An offer says what its consumer may have in all: what the consumer already holds of it, it subtracts itself.
//
// It may also answer the slices of its own class (granter.go), so that no room is granted twice.
//
// No credentials pass through here: an offer names a Secret of its consumer's cluster.
package agent
