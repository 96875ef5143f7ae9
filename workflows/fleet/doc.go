// Package fleet is the domain: the words for node groups, instances, offers, holds and peerings, the two tables that
// move them, and the machine of a node group.
//
// It is pure. It has no clock (callers pass the time), no I/O, no goroutine and no Temporal; it may therefore be called
// from workflow code, activities and servers alike. Everything here that carries JSON tags enters workflow histories or
// memos: it is a wire format, so fields are only ever added and enums are strings.
//
// # The files
//
// The tables: machine.go is the table of an instance's life, providertable.go that of a provider's peering; phase.go
// has the phases and steps, messages.go what entities and drivers tell each other, and the commands; commands.go keeps
// those that are open.
//
// A node group: ledger.go is its state, step.go takes what happens, operations.go what Cluster Autoscaler asks;
// names.go gives instances their names; views.go what drivers tell, results.go what became of commands, compare.go
// what the comparison finds, pause.go what a pause fails, snapshot.go what it publishes.
//
// The words that others share are in messages.go, spec.go, offer.go and attempt.go; failure.go, refusal.go and
// providerrefusal.go say no.
//
// Beside this package, driver and provider are the machines of the others. Package choice selects among offers, and
// comparison judges by all groups and providers of a hub: they read what the machines publish, and a machine needs only
// their results. Package template says what a Node is to be like. Below it, money sums up what nodes cost.
package fleet
