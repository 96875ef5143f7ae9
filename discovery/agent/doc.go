// Package agent runs in a provider cluster and offers its free capacity. Each consumer in the config receives one
// offer. The agent computes the offer from the nodes, pods and ResourceSlices of its cluster, and keeps it published
// while it runs.
//
//	nodes, pods, slices -> World -> Free -> offers -> Advertiser -> Sink (such as the discovery server)
//
// A granted slice reduces the free capacity, whether its consumer uses it or not. The pods that Liqo creates for the
// consumer do not reduce it a second time. An offer states the total amounts that its consumer may hold; the consumer
// subtracts its present holds.
//
// The agent can also grant or deny the slices of its own class (granter.go), so that no capacity is granted twice.
//
// The agent handles no credentials: an offer refers to a Secret in the consumer's cluster.
package agent
