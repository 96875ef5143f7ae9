package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func TestHashToken(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	cmd := newHashToken()
	var out testkit.Buffer
	cmd.SetIn(strings.NewReader(token + "\n"))
	cmd.SetOut(&out)
	cmd.SetArgs(nil)
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	// The hash is the output of: printf %s 0123456789abcdef0123456789abcdef | sha256sum
	require.Equal(t, "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9\n", out.String())

	for in, says := range map[string]string{
		"":                                "is empty",
		" \n":                             "is empty",
		"short-secret":                    "can be guessed",
		token + "\n" + token:              "more than one line",
		"token: " + token:                 "has spaces",
		strings.Repeat(token, 4<<10/32+1): "more than 4096",
	} {
		_, err := hashToken(strings.NewReader(in))
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "secret")
	}
}

// testSite is a discovery server with one writer.
type testSite struct {
	files  discoveryFiles
	client client.Options
}

// put publishes the sample offers.
func (s testSite) put(ctx context.Context, c *client.Client) error {
	samples, err := discovery.Parse(examples.Offers)
	for _, spec := range samples.Offers {
		if err == nil {
			_, err = c.Put(ctx, api.Posted{Spec: spec})
		}
	}
	return err
}

// discoverySiteAt writes the files of a discovery server, and runs the server until the test ends.
func discoverySiteAt(t *testing.T, dir string) (testSite, *testkit.Buffer) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var log testkit.Buffer
	const token = "0123456789abcdef0123456789abcdef"
	hash, err := hashToken(strings.NewReader(token))
	require.NoError(t, err)
	in := func(name string) string { return filepath.Join(dir, name) }
	d := testSite{
		files: discoveryFiles{cert: in("tls.crt"), key: in("tls.key"), writers: in("writers.yaml"),
			store: "sqlite:" + in("offers.db")},
		client: client.Options{URL: "https://" + listener.Addr().String(), CAFile: in("ca.crt"), TokenFile: in("token"),
			SecretNamespaces: []string{"liqo-autoscaler"}},
	}
	by := testkit.NewAuthority(t)
	by.Issue(t).Write(t, d.files.cert, d.files.key)
	require.NoError(t, os.WriteFile(d.client.CAFile, by.PEM(), 0o600))
	require.NoError(t, os.WriteFile(d.client.TokenFile, []byte(token), 0o600))
	writers := fmt.Appendf(nil, "writers:\n- name: dev\n  tokenSHA256: %q\n", hash)
	require.NoError(t, os.WriteFile(d.files.writers, writers, 0o600))
	site, err := d.files.open(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	served, watched := make(chan error, 1), make(chan struct{})
	go func() { served <- site.serve(ctx, listener) }()
	go func() { defer close(watched); site.watchWriters(ctx, 10*time.Millisecond) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
		<-watched
		require.NoError(t, site.Close())
	})
	return d, &log
}

// The writers file becomes invalid while the server runs. The server then refuses all clients and logs the error.
// When the file is repaired, the server accepts clients again.
func TestBrokenWritersFileIsLogged(t *testing.T) {
	d, log := discoverySiteAt(t, t.TempDir())
	c, err := client.New(d.client)
	require.NoError(t, err)
	require.NoError(t, d.put(t.Context(), c))

	good, err := os.ReadFile(d.files.writers)
	require.NoError(t, err)
	write := func(content []byte) { // atomically: otherwise a half-written file would be logged, too
		require.NoError(t, os.WriteFile(d.files.writers+".new", content, 0o600))
		require.NoError(t, os.Rename(d.files.writers+".new", d.files.writers))
	}
	write([]byte("writers: [{name: dev}]"))
	logged := func(what string) func() bool {
		return func() bool { return strings.Count(log.String(), what) == 1 }
	}
	require.Eventually(t, logged("the server refuses all requests until it is repaired"), 2*time.Minute,
		5*time.Millisecond)
	require.ErrorIs(t, d.put(t.Context(), c), client.ErrDenied)

	write(good)
	require.Eventually(t, logged("is valid again"), 2*time.Minute, 5*time.Millisecond)
	require.NoError(t, d.put(t.Context(), c))
}

func TestDiscoveryOpenErrors(t *testing.T) {
	d, _ := discoverySiteAt(t, t.TempDir())
	missing := filepath.Join(t.TempDir(), "no", "such")
	for says, change := range map[string]func(*discoveryFiles){
		"load server certificate":      func(f *discoveryFiles) { f.cert = missing },
		"private key does not match":   func(f *discoveryFiles) { f.cert = d.client.CAFile },
		"open writers file " + missing: func(f *discoveryFiles) { f.writers = missing },
		"open offers database":         func(f *discoveryFiles) { f.store = "sqlite:" + missing },
		"give sqlite:FILE or postgres": func(f *discoveryFiles) { f.store = "offers.db" },
		"needs --store postgres":       func(f *discoveryFiles) { f.dsn = missing },
		"read connection string":       func(f *discoveryFiles) { f.store, f.dsn = "postgres", missing },
	} {
		files := d.files
		change(&files)
		_, err := files.open(t.Context(), slog.New(slog.DiscardHandler), nil)
		require.ErrorContains(t, err, says)
	}
}
