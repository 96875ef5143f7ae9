// Package testkit contains helpers for the tests of several packages; only tests import it. Helpers that need Temporal
// or the simulated backend are in packages below it.
package testkit
