package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLogsAreClean logs texts of other parties that contain control characters and tokens. The log does not contain
// these characters and tokens.
func TestLogsAreClean(t *testing.T) {
	const hostile = "no \x1b]52;c;cm0=\a\u202Egnp.exe eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln"
	for _, format := range []string{"json", "text"} {
		var out strings.Builder
		logger, err := (&Log{Level: "info", Format: format}).Logger(&out)
		require.NoError(t, err)
		logger.Info(hostile, "text", hostile, "error", errors.New(hostile))
		require.Equal(t, 3, strings.Count(out.String(), "no  ]52;c;cm0=  gnp.exe (a token)"), out.String())
	}
}
