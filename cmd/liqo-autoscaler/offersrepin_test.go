package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// `offers repin` needs a name. It fails for a backend that does not pin certificate authorities.
func TestOffersRepinMisuse(t *testing.T) {
	_, _, err := command(t.Context(), "offers", "repin")
	require.ErrorContains(t, err, "accepts 1 arg(s)")
	_, _, err = command(t.Context(), "offers", "repin", "milan", "--backend", "sim", "--world",
		filepath.Join(t.TempDir(), "world"))
	require.ErrorContains(t, err, "--backend sim pins no providers")
	_, _, err = command(t.Context(), "offers", "repni", "milan")
	require.ErrorContains(t, err, `unknown command "repni"`)
}
