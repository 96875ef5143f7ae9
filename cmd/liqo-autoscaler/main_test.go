package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain keeps the developer's own Temporal, and who uses it, out of the tests.
func TestMain(m *testing.M) {
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TEMPORAL_") {
			_ = os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}
