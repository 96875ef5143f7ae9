// Package comparison evaluates a round of the observer: it compares the existing objects with the bookings. It decides
// which rows of an entity differ, which conditions each provider has, which instances are lost with their provider, and
// which objects on providers belong to no booking. Its input is the evidence of this round and of earlier rounds about
// the whole hub. The package is pure and keeps no state. The caller passes the results of the previous round, and the
// entities act on the differences that they receive.
package comparison
