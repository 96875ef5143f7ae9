// Package fleet is the domain: node groups, instances, offers, holds and peerings, and the two machines that move them.
//
// It is pure. It has no clock (callers pass the time), no I/O, no goroutine and no Temporal; it may therefore be called
// from workflow code, activities and servers alike. Everything here that carries JSON tags enters workflow histories or
// memos: it is a wire format, so fields are only ever added and enums are strings.
package fleet
