package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/store"
)

// selfSigned writes a fresh certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T, certFile, keyFile string, serial int64) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	rawKey, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(certFile, cert, 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: rawKey}), 0o600))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(cert))
	return pool
}

func TestServeUntilTheContextEnds(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	var log safeBuffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	_, err := LoadCertificates(certFile, keyFile, logger)
	require.Error(t, err)
	pool := selfSigned(t, certFile, keyFile, 1)
	certificates, err := LoadCertificates(certFile, keyFile, logger)
	require.NoError(t, err)

	s, err := New(Options{Store: store.NewMemory(), Writers: Writers{}, Log: logger})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, listener, certificates) }()

	get := func(pool *x509.CertPool, max uint16) (*http.Response, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MaxVersion: max}} //nolint:gosec // old on purpose
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Get("https://" + listener.Addr().String() + "/healthz")
		if err == nil {
			resp.Body.Close()
		}
		return resp, err
	}
	resp, err := get(pool, 0)
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
	_, err = get(pool, tls.VersionTLS11)
	require.Error(t, err, "TLS 1.2 at least")

	renewed := selfSigned(t, certFile, keyFile, 2)
	resp, err = get(renewed, 0)
	require.NoError(t, err, "a renewed certificate is served without a restart")
	require.EqualValues(t, 2, resp.TLS.PeerCertificates[0].SerialNumber.Int64())

	require.NoError(t, os.WriteFile(keyFile, []byte("broken key"), 0o600))
	resp, err = get(renewed, 0)
	require.NoError(t, err, "the last good one serves")
	require.EqualValues(t, 2, resp.TLS.PeerCertificates[0].SerialNumber.Int64())

	cancel()
	require.NoError(t, <-done)
	require.Contains(t, log.String(), "server certificate not renewed")
	_, err = get(renewed, 0)
	require.Error(t, err)
}

func TestServeSaysWhyItEnds(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	selfSigned(t, certFile, keyFile, 1)
	certificates, err := LoadCertificates(certFile, keyFile, slog.Default())
	require.NoError(t, err)
	s, err := New(Options{Store: store.NewMemory(), Writers: Writers{}})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	require.ErrorContains(t, s.Serve(t.Context(), listener, certificates), "serve discovery API")
}

func TestNewNeedsAStoreAndWriters(t *testing.T) {
	_, err := New(Options{Store: store.NewMemory()})
	require.Error(t, err)
	_, err = New(Options{Writers: Writers{}})
	require.Error(t, err)
}

// Files that change between their reading and the look at their times are read again.
func TestCertificateRenewedWhileItIsLoaded(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	selfSigned(t, certFile, keyFile, 1)
	oldKey, err := os.ReadFile(keyFile)
	require.NoError(t, err)
	require.NoError(t, os.Remove(keyFile))
	require.NoError(t, syscall.Mkfifo(keyFile, 0o600)) // whoever reads the key waits for us

	type loaded struct {
		c   *Certificates
		err error
	}
	done := make(chan loaded, 1)
	go func() {
		c, err := LoadCertificates(certFile, keyFile, slog.New(slog.DiscardHandler))
		done <- loaded{c, err}
	}()
	pipe, err := os.OpenFile(keyFile, os.O_WRONLY, 0) // returns when the key is being read; the certificate has been
	require.NoError(t, err)
	selfSigned(t, filepath.Join(dir, "new.crt"), filepath.Join(dir, "new.key"), 2)
	require.NoError(t, os.Rename(filepath.Join(dir, "new.crt"), certFile))
	require.NoError(t, os.Rename(filepath.Join(dir, "new.key"), keyFile))
	_, err = pipe.Write(oldKey)
	require.NoError(t, err)
	require.NoError(t, pipe.Close())
	first := <-done
	require.NoError(t, first.err)

	pair, err := first.c.get(nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, pair.Leaf.SerialNumber.Int64())
}
