// Package microvm makes nodes from microVMs on hosts with the REST API of Slicer. The host groups are the providers. A
// machine in a host group joins the cluster on its own, with the user data that it boots with.
//
// The package does not depend on Liqo. A machine needs no peering: Establish checks whether the host answers and is the
// same host as before. Each peering and each attempt has one ConfigMap in a namespace of the consumer. The ConfigMap is
// made first, so that recovery after a crash finds the peering or the machine:
//
//	provider.<host group>    credentials (the reference), the pin of the host, a refusal while it is remembered
//	node.<attempt>           booking, mark; its finalizer is removed once the host has no machine of the attempt
//
// A machine carries a tag with the attempt's name, which identifies it. The package never changes a machine without
// such a tag. A Node belongs to the attempt if it has the attempt's name and the labels of its group and provider. Both
// come from the user data.
package microvm
