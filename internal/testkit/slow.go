package testkit

import "testing"

// Slow skips a test when -short is given, as in `make test`; `make test-all` and CI run it.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is slow: run make test-all")
	}
}
