// Package testkit contains helpers for the tests of several packages. Only tests import it. Helpers that need
// Temporal or the simulated backend are in packages below this folder.
package testkit
