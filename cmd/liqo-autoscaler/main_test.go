package main

import (
	"os"
	"strings"
	"testing"
)

// TestMain removes the developer's Temporal settings and trace settings from the environment of the tests.
func TestMain(m *testing.M) {
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "TEMPORAL_") || strings.HasPrefix(name, "OTEL_") {
			_ = os.Unsetenv(name)
		}
	}
	os.Exit(m.Run())
}
