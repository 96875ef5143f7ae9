package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// FuzzPages reads pages of offers with any content that a discovery server can send. Each item becomes an offer, or at
// most one problem whose text is bounded and printable.
func FuzzPages(f *testing.F) {
	token := filepath.Join(f.TempDir(), "token")
	require.NoError(f, os.WriteFile(token, []byte("t"), 0o600))
	c, err := New(Options{URL: "https://127.0.0.1:1", TokenFile: token, SecretNamespaces: []string{"lend"}})
	require.NoError(f, err)
	s, err := NewSource(c)
	require.NoError(f, err)
	for _, seed := range []string{
		`{"items": [{"name": "milan", "provider": "milan", "lendable": {"cpu": "16", "memory": "64Gi", "pods": "440"},
			"credentials": {"secretRef": {"namespace": "lend", "name": "milan"}}, "epoch": "1", "remainingSeconds": 30}]}`,
		`{"items": [null, 1, [], {}, {"name": "\u001b]52;c;cm0=\u0007"}, {"name": "a", "lendable": {"cpu": 1e1000000}}]}`,
		`{"items": [{"name": "a", "NAME": "b"}, {"name": "a"}, {"provider": {"a": "b"}}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var answered page
		if json.Unmarshal(raw, &answered) != nil || answered.Items == nil {
			return
		}
		offers, problems := s.validate(*answered.Items, time.Now())
		require.LessOrEqual(t, len(offers)+len(problems), len(*answered.Items))
		require.LessOrEqual(t, len(*answered.Items), api.MaxLimit)
		for _, p := range problems {
			text := p.Offer + p.Message
			require.Less(t, len(text), 10_000)
			hidden := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' }
			require.Negative(t, strings.IndexFunc(text, hidden), "%q", text)
		}
	})
}
