// Package testkit is what the tests of several packages need; only tests import it. What needs Temporal or the
// simulated backend has packages of its own below.
package testkit
