package testkit

import "testing"

// Slow skips the test if -short is given, as `make test` does. `make test-all` and CI run it.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is slow: run make test-all")
	}
}
