// Package fleet is the domain: the words for node groups, instances, offers, holds and peerings, the two tables that
// move them, and the machine of a node group.
//
// It is pure. It has no clock (callers pass the time), no I/O, no goroutine and no Temporal; it may therefore be called
// from workflow code, activities and servers alike. Everything here that carries JSON tags enters workflow histories or
// memos: it is a wire format, so fields are only ever added and enums are strings.
//
// # The files
//
// The tables: machine.go is the table of an instance's life, with its phases, steps and events, providertable.go that
// of a provider's peering; instance.go moves an instance by the first.
//
// A node group: ledger.go is its state, step.go takes what happens, operations.go what Cluster Autoscaler asks;
// views.go what drivers tell, results.go what became of commands, compare.go what the observer, looks and watchers
// find, standby.go which peerings are kept ready, pause.go what a pause fails, memory.go what is remembered of choices
// and failures, meter.go what nodes cost, snapshot.go what it publishes.
//
// The words that others share: messages.go has what entities and drivers tell each other, commands.go what they want
// done, and keeps what is open; spec.go and node.go a group, offer.go and amounts.go an offer, attempt.go a provider,
// an attempt and what exists of it, provider.go and standing.go what is told of a provider; failure.go says no;
// names.go gives names, codec.go packs.
//
// Beside this package, driver and provider are the machines of the others. Package choice selects among offers, and
// comparison judges by all groups and providers of a hub: they read what the machines publish, and a machine needs only
// their results. Package template says what a Node is to be like. Below it, money sums up what nodes cost.
package fleet
