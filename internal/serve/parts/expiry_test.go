package parts

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/account"
)

// expiringBackend is a backend that can only report when its credentials expire.
type expiringBackend struct {
	backend.Backend
	lives map[string]account.Life
}

func (e expiringBackend) CredentialsLife() map[string]account.Life { return e.lives }

// If credentials expire soon or have expired, a warning is logged once a day for each provider.
func TestExpiringCredentialsCauseAWarning(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewTextHandler(&out, nil))
	now := time.Now()
	in := func(left time.Duration) account.Life { return account.Life{End: now.Add(left)} }
	lives := map[string]account.Life{"late": in(15 * 24 * time.Hour), "soon": in(13 * 24 * time.Hour),
		"over": in(-time.Hour), "day": {Begin: now.Add(-time.Hour), End: now.Add(30 * time.Hour)}}
	warned := map[string]time.Time{}
	lines := func(after time.Duration) int {
		out.Reset()
		warnOfExpiry(log, lives, warned, now.Add(after))
		return strings.Count(out.String(), "\n")
	}
	require.Equal(t, 2, lines(0))
	require.Contains(t, out.String(), "provider=soon end="+lives["soon"].End.UTC().Format(time.RFC3339))
	require.Equal(t, 1, lines(23*time.Hour))
	require.Contains(t, out.String(), "provider=day", "a third of its life is left")
	require.Equal(t, 3, lines(25*time.Hour))
}
