// Package fleet is the domain: node groups, instances, offers, holds and peerings, and the two machines that move them.
//
// It is pure. It has no clock (callers pass the time), no I/O, no goroutine and no Temporal; it may therefore be called
// from workflow code, activities and servers alike. Everything here that carries JSON tags enters workflow histories or
// memos: it is a wire format, so fields are only ever added and enums are strings.
//
// # The files
//
// The machines: machine.go is the table of an instance's life, peering.go that of a provider's peering; phase.go and
// commands.go have their words, messages.go what entities and drivers tell each other.
//
// A node group: ledger.go is its state, step.go takes what happens, operations.go what Cluster Autoscaler asks; names
// of instances are given out there, by names.go; views.go what drivers tell, results.go what became of commands,
// compare.go what the comparison finds, pause.go what a pause fails, snapshot.go what it publishes.
//
// A driver: driver.go takes what happens, driversteps.go the end of a step, driverwaits.go a provider's answer, which
// moves the phase Peering on; driverviews.go has what it tells.
//
// A provider: provider.go is its state and moves, holds.go takes and releases capacity, providerresults.go what became
// of commands and what exists, refusing.go its no, cordon.go an operator's, providersnapshot.go what it publishes.
//
// Beside this package, choice selects among offers, and comparison judges by all groups and providers of a hub. They
// read what the machines publish, and a machine needs only their results. Below it, money sums up what nodes cost.
package fleet
