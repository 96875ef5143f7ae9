// Package microvm makes nodes of microVMs on hosts with a REST API, that of Slicer: its host groups are the providers,
// and a machine in one of them joins the cluster by itself, by the user data that it boots with.
//
// It knows nothing of Liqo. A machine needs no peering: Establish looks whether the host answers and is the one it was.
// What exists of a peering and of an attempt is a ConfigMap each in a namespace of the consumer, made before what it is
// about, so that a crash in between is found again:
//
//	provider.<host group>    credentials (the reference), what the host is pinned to, a refusal while it is remembered
//	node.<attempt>           booking, mark; its finalizer goes once the host has no machine of it
//
// The machine carries a tag with the attempt's name, by which it is found, and no other is touched. The Node is the
// attempt's if it has that name and the labels of its group and provider; both come from the user data.
package microvm
