package parts

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
)

// expiringBackend is a backend that knows when its credentials end, and nothing else.
type expiringBackend struct {
	backend.Backend
	ends map[string]time.Time
}

func (e expiringBackend) CredentialsEnd() map[string]time.Time { return e.ends }

// Credentials that end soon or have ended are warned of once a day, each provider by itself.
func TestWarnOfExpiry(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	now := time.Now()
	ends := map[string]time.Time{"late": now.Add(15 * 24 * time.Hour), "soon": now.Add(13 * 24 * time.Hour),
		"over": now.Add(-time.Hour)}
	warned := map[string]time.Time{}
	lines := func(after time.Duration) int {
		out.Reset()
		warnOfExpiry(log, ends, warned, now.Add(after))
		return strings.Count(out.String(), "\n")
	}
	require.Equal(t, 2, lines(0))
	require.Contains(t, out.String(), "provider=soon end="+ends["soon"].UTC().Format(time.RFC3339))
	require.Zero(t, lines(23*time.Hour))
	require.Equal(t, 3, lines(25*time.Hour))
}
