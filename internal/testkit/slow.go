package testkit

import "testing"

// Slow skips the test with -short, which `make test` sets. `make test-all` and CI run the test.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is slow: run make test-all")
	}
}
