package client_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/client"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// While clients call the server, its certificate and the authority are replaced. First, the clients trust both
// authorities. Then the server gets a certificate of the new authority. At the end the clients trust only the new
// authority. No call fails.
func TestRotationUnderLoad(t *testing.T) {
	was, will := testkit.NewAuthority(t), testkit.NewAuthority(t)
	web := testkit.NewMount(t, was.Issue(t).Secret(t, was))
	trusted := testkit.NewMount(t, was.Secret(t, was))
	logs := &testkit.Buffer{}
	log := slog.New(slog.NewTextHandler(logs, nil))
	writers, err := server.ParseWriters(fmt.Appendf(nil, "writers: [{name: w, tokenSHA256: %s}]", hash(token)))
	require.NoError(t, err)
	s, err := server.New(server.Options{Store: storetest.New(t), Writers: writers, Log: log})
	require.NoError(t, err)
	certificates, err := server.LoadCertificates(web.File("tls.crt"), web.File("tls.key"), log)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener, certificates) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	tokenFile := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(tokenFile, []byte(token), 0o600))
	options := client.Options{URL: "https://" + listener.Addr().String(), CAFile: trusted.File("ca.crt"),
		TokenFile: tokenFile, SecretNamespaces: []string{"lend"}}
	stays, err := client.New(options)
	require.NoError(t, err)
	waits, err := client.New(options) // this client connects after the replacement
	require.NoError(t, err)
	list := func(ctx context.Context, c *client.Client) error {
		src, err := client.NewSource(c)
		if err != nil {
			return err
		}
		if _, problems, err := src.List(ctx); err != nil || len(problems) > 0 {
			return fmt.Errorf("list offers: %v: %w", problems, err)
		}
		return nil
	}

	everybodyIsBack, end := testkit.Load(t, 4, func(ctx context.Context) error {
		c, err := client.New(options)
		if err != nil {
			return err
		}
		if err := list(ctx, c); err != nil {
			return err
		}
		return list(ctx, stays)
	})
	everybodyIsBack()
	trusted.Write(was.Secret(t, was, will))
	everybodyIsBack()
	web.Write(will.Issue(t).Secret(t, will))
	everybodyIsBack()
	trusted.Write(will.Secret(t, will))
	everybodyIsBack()
	end()
	require.NoError(t, list(t.Context(), waits))
	require.Empty(t, logs.String())
}

// A client uses a certificate in place of a token, and reads it again when it changes. The server refuses an expired
// certificate with a message, even on an existing connection. When the client has renewed its certificate, the server
// accepts it again. The server also refuses the certificate of a removed writer.
func TestClientCertificateReplacesAToken(t *testing.T) {
	authority := testkit.NewAuthority(t)
	milan := func(change ...func(*x509.Certificate)) map[string][]byte {
		return authority.Issue(t, append(change, func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: "spiffe", Host: "munich.example", Path: "/provider/milan"}}
		})...).Secret(t, authority)
	}
	mine, rows := testkit.NewMount(t, milan()), filepath.Join(t.TempDir(), "writers.yaml")
	row := []byte("writers: [{name: milan, certificate: 'spiffe://munich.example/provider/milan'}]")
	require.NoError(t, os.WriteFile(rows, row, 0o600))
	writers, err := server.OpenWriters(rows)
	require.NoError(t, err)
	authorities, err := server.LoadAuthorities(mine.File("ca.crt"), slog.Default())
	require.NoError(t, err)
	s, err := server.New(server.Options{Store: storetest.New(t), Writers: writers, ClientAuthorities: authorities,
		Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	certificates, err := server.LoadCertificates(mine.File("tls.crt"), mine.File("tls.key"), slog.Default())
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener, certificates) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	shown := testkit.NewMount(t, milan())
	c, err := client.New(client.Options{URL: "https://" + listener.Addr().String(), CAFile: mine.File("ca.crt"),
		CertFile: shown.File("tls.crt"), KeyFile: shown.File("tls.key"), Timeout: time.Minute})
	require.NoError(t, err)
	put := func() error {
		_, err := c.Put(t.Context(), posted(t, "milan"))
		return err
	}
	require.NoError(t, put())
	shown.Write(milan(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }))
	require.ErrorIs(t, put(), client.ErrDenied)
	require.ErrorContains(t, put(), "renew it")
	shown.Write(milan())
	require.NoError(t, put())
	require.NoError(t, os.WriteFile(rows, []byte("writers: []"), 0o600))
	require.ErrorIs(t, put(), client.ErrDenied)
	require.ErrorContains(t, put(), "was the writer removed?")
}
