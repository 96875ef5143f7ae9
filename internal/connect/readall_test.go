package connect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// If some reads fail, ReadAll returns their errors together with the results of the other reads.
func TestReadAllReturnsPartialResults(t *testing.T) {
	read := func(name string) (string, error) {
		if name == "bad" {
			return "", fleet.ErrUnavailable
		}
		return strings.ToUpper(name), nil
	}
	results, err := ReadAll([]string{"a", "bad", "c"}, true, read)
	require.Equal(t, []string{"A", "C"}, results)
	require.EqualError(t, err, "read bad: unavailable")
	gone := func(string) (string, error) {
		return "", fmt.Errorf("nodegroup/a %w: %w", fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	results, err = ReadAll([]string{"a"}, true, gone)
	require.Empty(t, results)
	require.NoError(t, err, "the index lags behind")
	_, err = ReadAll([]string{"a"}, false, gone)
	require.Error(t, err, "it was requested")
}
