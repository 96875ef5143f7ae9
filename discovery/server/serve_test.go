package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store/storetest"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// selfSigned writes a new certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T, certFile, keyFile string) *testkit.Certificate {
	t.Helper()
	c := testkit.NewAuthority(t)
	c.Write(t, certFile, keyFile)
	return c
}

func TestServeUntilTheContextEnds(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	var log testkit.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	_, err := LoadCertificates(certFile, keyFile, logger)
	require.Error(t, err)
	first := selfSigned(t, certFile, keyFile)
	certificates, err := LoadCertificates(certFile, keyFile, logger)
	require.NoError(t, err)

	s, err := New(Options{Store: storetest.New(t), Writers: Writers{}, Log: logger})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener, certificates) }()

	get := func(pool *x509.CertPool, max uint16) (*http.Response, error) {
		//nolint:gosec // old on purpose
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: max}}
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get("https://" + listener.Addr().String() + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return resp, err
	}
	resp, err := get(first.Pool(), 0)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	_, err = get(first.Pool(), tls.VersionTLS11)
	require.Error(t, err, "TLS 1.2 at least")

	renewed := selfSigned(t, certFile, keyFile)
	resp, err = get(renewed.Pool(), 0)
	require.NoError(t, err, "a renewed certificate is served without a restart")
	require.Equal(t, renewed.Cert, resp.TLS.PeerCertificates[0])

	require.NoError(t, os.WriteFile(keyFile, []byte("broken key"), 0o600))
	resp, err = get(renewed.Pool(), 0)
	require.NoError(t, err, "the last good one serves")
	require.Equal(t, renewed.Cert, resp.TLS.PeerCertificates[0])

	cancel()
	require.NoError(t, <-done)
	require.Contains(t, log.String(), "server certificate cannot be reloaded")
	_, err = get(renewed.Pool(), 0)
	require.Error(t, err)
}

func TestServeReportsWhyItEnds(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	selfSigned(t, certFile, keyFile)
	certificates, err := LoadCertificates(certFile, keyFile, slog.Default())
	require.NoError(t, err)
	s, err := New(Options{Store: storetest.New(t), Writers: Writers{}})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.ErrorContains(t, s.Serve(t.Context(), listener, certificates), "serve discovery API")
}

func TestNewNeedsAStoreAndWriters(t *testing.T) {
	_, err := New(Options{Store: storetest.New(t)})
	require.Error(t, err)
	_, err = New(Options{Writers: Writers{}})
	require.Error(t, err)
	_, err = New(Options{Store: storetest.New(t), Writers: Writers{}, Rate: -1})
	require.Error(t, err)
}

// When the files change between the read of the certificate and the read of the key, the server reads both files again.
func TestCertificateRenewedDuringItsLoadIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	selfSigned(t, certFile, keyFile)
	oldKey, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	require.NoError(t, os.Remove(keyFile))
	require.NoError(t, syscall.Mkfifo(keyFile, 0o600)) // a reader of the key waits for this test to write

	type loaded struct {
		c   *Certificates
		err error
	}
	done := make(chan loaded, 1)
	go func() {
		c, err := LoadCertificates(certFile, keyFile, slog.New(slog.DiscardHandler))
		done <- loaded{c, err}
	}()
	pipe, err := os.OpenFile(keyFile, os.O_WRONLY, 0) // returns when the server reads the key, after the certificate
	require.NoError(t, err)
	renewed := selfSigned(t, filepath.Join(dir, "new.crt"), filepath.Join(dir, "new.key"))
	require.NoError(t, os.Rename(filepath.Join(dir, "new.crt"), certFile))
	require.NoError(t, os.Rename(filepath.Join(dir, "new.key"), keyFile))
	_, err = pipe.Write(oldKey)
	require.NoError(t, err)
	require.NoError(t, pipe.Close())
	first := <-done
	require.NoError(t, first.err)

	pair, err := first.c.get(nil)
	require.NoError(t, err)
	require.Equal(t, renewed.Cert, pair.Leaf)
}
