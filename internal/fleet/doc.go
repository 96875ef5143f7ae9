// Package fleet contains the domain model: the types for node groups, instances, offers, holds and peerings, the two
// transition tables, and the state machine of a node group.
//
// The package is pure. It has no clock (callers pass the time), no I/O, no goroutine and no Temporal, so workflow code,
// activities and servers may call it. Every type with JSON tags enters workflow histories or memos. These types are
// wire formats: fields are only ever added, and enums are strings.
//
// # The files
//
// The tables: machine.go contains the table of an instance's life, with its phases, steps and events. providertable.go
// contains the table of a provider's peering. instance.go applies the first table to an instance.
//
// A node group: ledger.go defines its state, step.go processes events, and operations.go serves Cluster Autoscaler.
// views.go processes the views of drivers, results.go the results of commands, and compare.go the findings of the
// observer, inspections and watchers. standby.go selects the peerings that are kept ready, pause.go pauses a group,
// failover.go defines the moves to the next provider, memory.go records choices and failures, meter.go counts the
// costs, and snapshot.go builds the published state.
//
// The shared types: messages.go defines the messages between entities and drivers, and commands.go the commands of
// entities. spec.go and node.go describe a group. offer.go, amounts.go and architecture.go describe an offer.
// attempt.go describes a provider, an attempt and its objects. provider.go and standing.go describe the state of a
// provider, and failure.go failures and refusals. accounts.go computes bills and balances, names.go builds names, and
// codec.go packs states.
//
// The packages driver and provider implement the other two state machines. Package choice selects among offers.
// Package comparison evaluates all groups and providers of a hub (one installation). Both packages read the state
// that the machines publish, and a machine needs only their results. Package template describes the Node of a group.
// Package money sums up the costs of nodes.
package fleet
