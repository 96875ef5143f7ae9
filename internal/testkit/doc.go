// Package testkit has helpers for the tests of several packages; only tests import it. Helpers that need Temporal or
// the simulated backend have packages of their own below.
package testkit
