package grpcserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// Scenario S35: the server's certificate rotates without a restart. The server accepts only a valid client.
func TestTLSRotatesTheServersCertificate(t *testing.T) {
	dir := t.TempDir()
	files := TLSFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir,
		"ca.crt")}
	authority, stranger := testkit.NewAuthority(t), testkit.NewAuthority(t)
	authority.Issue(t, numbered(1)).Write(t, files.Cert, files.Key)
	require.NoError(t, os.WriteFile(files.ClientCA, authority.PEM(), 0o600))

	creds, err := TLS(files, nil, quiet)
	require.NoError(t, err)
	address := serveTCP(t, loaded(t, newFake(), specs("cpu")...), creds)

	// ask makes a new connection and returns the serial number of the server's certificate.
	ask := func(own *testkit.Certificate) (int64, error) {
		config := &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}
		if own != nil {
			config.Certificates = []tls.Certificate{own.TLS()}
		}
		return call(t, address, credentials.NewTLS(config))
	}
	client := authority.Issue(t)
	serial, err := ask(client)
	require.NoError(t, err)
	require.EqualValues(t, 1, serial)

	authority.Issue(t, numbered(2)).Write(t, files.Cert, files.Key)
	serial, err = ask(client)
	require.NoError(t, err)
	require.EqualValues(t, 2, serial, "rotated")

	require.NoError(t, os.WriteFile(files.Key, []byte("half written"), 0o600))
	serial, err = ask(client)
	require.NoError(t, err)
	require.EqualValues(t, 2, serial, "the last good one")

	for name, bad := range map[string]*testkit.Certificate{
		"no certificate": nil,
		"expired":        authority.Issue(t, expired),
		"stranger":       stranger.Issue(t),
	} {
		_, err := ask(bad)
		requireCode(t, codes.Unavailable, err)
		require.Error(t, err, name)
	}
	_, err = call(t, address, insecure.NewCredentials())
	requireCode(t, codes.Unavailable, err)
}

func TestTLSRefusesAnIncompleteConfig(t *testing.T) {
	dir := t.TempDir()
	files := TLSFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir,
		"ca.crt")}
	_, err := TLS(TLSFiles{Cert: files.Cert}, nil, quiet)
	require.ErrorContains(t, err, "or none of the three")
	_, err = TLS(files, nil, quiet)
	require.ErrorIs(t, err, os.ErrNotExist)
	testkit.NewAuthority(t).Issue(t, numbered(1)).Write(t, files.Cert, files.Key)
	require.NoError(t, os.WriteFile(files.ClientCA, []byte("nothing"), 0o600))
	_, err = TLS(files, nil, quiet)
	require.ErrorContains(t, err, "no PEM certificate")
}

// tlsSite serves over TLS with its own certificate authority. It keeps the log, including debug lines.
func tlsSite(t *testing.T, allowed ...string) (address string, files TLSFiles, by *testkit.Certificate,
	logs *testkit.Buffer) {
	t.Helper()
	files, by = tlsFiles(t)
	logs = &testkit.Buffer{}
	creds, err := TLS(files, allowed, slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	require.NoError(t, err)
	return serveTCP(t, loaded(t, newFake(), specs("cpu")...), creds), files, by, logs
}

// tlsFiles returns the files of a server, with their own certificate authority.
func tlsFiles(t *testing.T) (files TLSFiles, by *testkit.Certificate) {
	t.Helper()
	dir := t.TempDir()
	files = TLSFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir,
		"ca.crt")}
	by = testkit.NewAuthority(t)
	by.Issue(t, numbered(1)).Write(t, files.Cert, files.Key)
	require.NoError(t, os.WriteFile(files.ClientCA, by.PEM(), 0o600))
	return files, by
}

// Only clients with an allowed name are accepted, although the authority has signed certificates of other clients.
func TestTLSAcceptsOnlyAllowedNames(t *testing.T) {
	address, files, authority, logs := tlsSite(t, "cluster-autoscaler", "spiffe://cluster/ca")
	named := func(change func(*x509.Certificate)) *testkit.Certificate {
		nameless := func(c *x509.Certificate) { c.Subject, c.DNSNames, c.IPAddresses = pkix.Name{}, nil, nil }
		return authority.Issue(t, nameless, change)
	}
	for name, tc := range map[string]struct {
		change func(*x509.Certificate)
		why    string // the reason in the log; empty: the client is accepted
	}{
		"DNS name":    {change: func(c *x509.Certificate) { c.DNSNames = []string{"other", "cluster-autoscaler"} }},
		"common name": {change: func(c *x509.Certificate) { c.Subject.CommonName = "cluster-autoscaler" }},
		"URI": {change: func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: "spiffe", Host: "cluster",
				Path: "/ca"}}
		}},
		"another": {
			change: func(c *x509.Certificate) {
				c.Subject.CommonName, c.DNSNames, c.IPAddresses = "me", []string{"cluster-autoscaler.evil"},
					[]net.IP{net.IPv4(10, 0, 0, 7)}
			},
			why: "the client certificate's names [cluster-autoscaler.evil, 10.0.0.7, me] are not among the allowed ones " +
				"[cluster-autoscaler, spiffe://cluster/ca]",
		},
		"none": {
			change: func(c *x509.Certificate) {},
			why:    "the client certificate's names [] are not among the allowed ones",
		},
	} {
		config := &tls.Config{RootCAs: authority.Pool(), ServerName: "localhost",
			Certificates: []tls.Certificate{named(tc.change).TLS()}}
		_, err := call(t, address, credentials.NewTLS(config))
		if tc.why == "" {
			require.NoError(t, err, name)
			continue
		}
		requireCode(t, codes.Unavailable, err)
		require.Eventually(t, func() bool { return strings.Contains(logs.String(), tc.why) }, 2*time.Minute,
			time.Millisecond, "%s: %s", name, logs)
	}
	_, err := call(t, address, credentials.NewTLS(&tls.Config{RootCAs: authority.Pool(), ServerName: "localhost"}))
	requireCode(t, codes.Unavailable, err)
	require.Eventually(t, func() bool { return strings.Contains(logs.String(), "client didn't provide a certificate") },
		2*time.Minute, time.Millisecond)
	require.Contains(t, logs.String(), `level=WARN msg="client refused" address=127.0.0.1:`)

	_, err = TLS(files, []string{"a", ""}, quiet)
	require.ErrorContains(t, err, "an allowed name is empty", "it would match certificates without a common name")
}

// The certificate authority of clients rotates without a restart. While the file contains both authorities, the clients
// of both are accepted. Afterwards only the clients of the new authority are accepted.
func TestTLSRotatesTheClientAuthority(t *testing.T) {
	dir := t.TempDir()
	files := TLSFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir,
		"ca.crt")}
	was, will := testkit.NewAuthority(t), testkit.NewAuthority(t)
	was.Issue(t, numbered(1)).Write(t, files.Cert, files.Key)
	trust := func(authorities ...*testkit.Certificate) {
		var bundle []byte
		for _, a := range authorities {
			bundle = append(bundle, a.PEM()...)
		}
		require.NoError(t, os.WriteFile(files.ClientCA, bundle, 0o600))
	}
	trust(was)
	creds, err := TLS(files, []string{"localhost"}, quiet)
	require.NoError(t, err)
	address := serveTCP(t, loaded(t, newFake(), specs("cpu")...), creds)
	client := func(by *testkit.Certificate) credentials.TransportCredentials {
		return credentials.NewTLS(&tls.Config{RootCAs: was.Pool(), ServerName: "localhost",
			ClientSessionCache: tls.NewLRUClientSessionCache(8),
			Certificates:       []tls.Certificate{by.Issue(t).TLS()}})
	}
	old, next := client(was), client(will)
	ask := func(creds credentials.TransportCredentials, want codes.Code, when string) {
		_, err := call(t, address, creds)
		require.Equal(t, want, status.Code(err), "%s: %v", when, err)
	}
	ask(old, codes.OK, "at first")
	ask(next, codes.Unavailable, "at first")
	trust(was, will)
	ask(old, codes.OK, "both")
	ask(next, codes.OK, "both")
	trust(will)
	ask(old, codes.Unavailable, "the new one only")
	ask(next, codes.OK, "the new one only")
}

// A probe that connects and disconnects immediately causes no warning.
func TestTLSProbesCauseNoWarning(t *testing.T) {
	address, _, _, logs := tlsSite(t)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Eventually(t, func() bool { return strings.Contains(logs.String(), "client refused") }, 2*time.Minute,
		time.Millisecond)
	require.NotContains(t, logs.String(), "WARN")
}

func serveTCP(t *testing.T, s *Server, creds credentials.TransportCredentials) string {
	t.Helper()
	return serveTCPWith(t, s, ServeOptions{Credentials: creds})
}

func serveTCPWith(t *testing.T, s *Server, o ServeOptions) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, s, o) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return listener.Addr().String()
}

func call(t *testing.T, address string, creds credentials.TransportCredentials) (int64, error) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	require.NoError(t, err)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var remote peer.Peer
	_, err = protos.NewCloudProviderClient(conn).NodeGroups(ctx, &protos.NodeGroupsRequest{}, grpc.Peer(&remote))
	if err != nil {
		return 0, err
	}
	return remote.AuthInfo.(credentials.TLSInfo).State.PeerCertificates[0].SerialNumber.Int64(), nil
}

func numbered(n int64) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.SerialNumber = big.NewInt(n) }
}

func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
