// Package offerserver starts a discovery server for tests.
package offerserver

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

const token = "0123456789abcdef0123456789abcdef"

// New starts a discovery server that runs until the test ends. The server has one writer, a client that may publish
// offers. New returns the options with which this writer connects to the server.
func New(t *testing.T) client.Options {
	t.Helper()
	dir, by := t.TempDir(), testkit.NewAuthority(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	by.Issue(t).Write(t, in("tls.crt"), in("tls.key"))
	for name, text := range map[string][]byte{"ca.crt": by.PEM(), "token": []byte(token),
		"writers.yaml": fmt.Appendf(nil, "writers:\n- {name: dev, tokenSHA256: %x}\n", sha256.Sum256([]byte(token)))} {
		require.NoError(t, os.WriteFile(in(name), text, 0o600))
	}
	certificates, err := server.LoadCertificates(in("tls.crt"), in("tls.key"), nil)
	require.NoError(t, err)
	writers, err := server.OpenWriters(in("writers.yaml"))
	require.NoError(t, err)
	s, err := server.New(server.Options{Store: storetest.New(t), Writers: writers})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, listener, certificates) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
	})
	return client.Options{URL: "https://" + listener.Addr().String(), CAFile: in("ca.crt"), TokenFile: in("token"),
		SecretNamespaces: []string{"liqo-autoscaler"}}
}

// PutSamples publishes the offers in deploy/examples on the server.
func PutSamples(t *testing.T, to client.Options) {
	t.Helper()
	c, err := client.New(to)
	require.NoError(t, err)
	samples, err := discovery.Parse(examples.Offers)
	require.NoError(t, err)
	for _, spec := range samples.Offers {
		_, err := c.Put(t.Context(), api.Posted{Spec: spec})
		require.NoError(t, err)
	}
}
