// Package microvm makes nodes from microVMs on hosts with the REST API of Slicer. The host groups are the providers.
// A machine boots with user data that makes it join the cluster on its own.
//
// The package does not depend on Liqo. A machine needs no peering: Establish only checks that the host answers and is
// the same host as before. Each peering and each attempt has one ConfigMap in a namespace of the consumer. The
// ConfigMap is made first, so that recovery after a crash finds the peering or the machine:
//
//	provider.<host group>    credentials (the reference), the pin of the host, a refusal while it is remembered
//	node.<attempt>           booking, mark; its finalizer is removed once the host has no machine of the attempt
//
// A machine carries a tag with the attempt's name. The tag identifies our machines. The package never changes a
// machine without such a tag. A Node belongs to the attempt if it has the attempt's name and the labels of its group
// and provider. The machine's user data sets both the name and the labels.
package microvm
