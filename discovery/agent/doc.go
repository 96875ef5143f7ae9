// Package agent runs in a provider cluster and offers its free capacity. Each consumer in the config receives one
// offer. The agent measures it from the cluster's own nodes, pods and ResourceSlices, and keeps it at the discovery
// server while the agent lives.
//
//	nodes, pods, slices -> World -> Free -> offers -> Advertiser -> Sink (the discovery server)
//
// A grant counts whether its consumer uses it or not. The pods that Liqo creates for a consumer do not count a second
// time. An offer states the total amounts that its consumer may hold; the consumer subtracts its present holds.
//
// The agent may also answer the slices of its own class (granter.go), so that no capacity is granted twice.
//
// The agent handles no credentials: an offer names a Secret in its consumer's cluster.
package agent
