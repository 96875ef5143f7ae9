// Package agent runs in a provider cluster and offers the cluster's free capacity. The config lists the offers,
// usually one for each consumer. The agent computes the offers from the nodes, pods and ResourceSlices of its
// cluster. The offers stay published while the agent runs.
//
//	nodes, pods, slices -> World -> Free -> offers -> Advertiser -> Sink (such as the discovery server)
//
// A granted slice reduces the free capacity, whether its consumer uses it or not. The pods that Liqo creates for the
// consumer do not reduce the free capacity a second time. An offer contains the total amounts that its consumer may
// hold. The consumer subtracts its present holds.
//
// The agent can also grant or deny the slices of its own class (granter.go). Then no capacity is granted twice.
//
// The agent does not handle credentials for consumers: an offer only refers to a Secret in the consumer's cluster.
package agent
