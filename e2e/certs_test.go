package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// newAuthority signs certificates for one run of a suite. All of them have the name that cert-manager gives the
// chart's, so that no certificate is held back for its issuer's name alone.
func newAuthority(t *testing.T) *testkit.Certificate {
	t.Helper()
	return testkit.NewAuthority(t, func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: "liqo-autoscaler-ca"} })
}

// serverSecret is the Secret of the gRPC server, as the chart mounts it: its certificate, and which clients it accepts.
func serverSecret(t *testing.T, a *testkit.Certificate) map[string][]byte {
	t.Helper()
	return secretOf(t, a.Issue(t, func(c *x509.Certificate) {
		c.Subject, c.DNSNames, c.ExtKeyUsage = pkix.Name{}, nil, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}), a)
}

// clientSecret is the Secret of Cluster Autoscaler: a certificate with that name, and whose server it trusts.
func clientSecret(t *testing.T, a *testkit.Certificate, name string, trusted *testkit.Certificate) map[string][]byte {
	t.Helper()
	return secretOf(t, a.Issue(t, func(c *x509.Certificate) {
		c.Subject, c.DNSNames, c.IPAddresses = pkix.Name{CommonName: name}, nil, nil
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}), trusted)
}

func secretOf(t *testing.T, c, trusted *testkit.Certificate) map[string][]byte {
	t.Helper()
	return map[string][]byte{"tls.crt": c.PEM(), "tls.key": c.KeyPEM(t), "ca.crt": trusted.PEM()}
}

// mount is a folder with the files of a Secret, exchanged all at once, as the kubelet does it: they are links into
// ..data, which is a link to the folder of a version.
type mount struct {
	t       *testing.T
	dir     string
	version int
}

// newMount puts it into a folder that goes with the test.
func newMount(t *testing.T, files map[string][]byte) *mount {
	m := &mount{t: t, dir: t.TempDir()}
	for name := range files {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), m.file(name)))
	}
	m.write(files)
	return m
}

func (m *mount) file(name string) string { return filepath.Join(m.dir, name) }

func (m *mount) write(files map[string][]byte) {
	m.t.Helper()
	m.version++
	version := fmt.Sprintf("..%d", m.version)
	require.NoError(m.t, os.Mkdir(m.file(version), 0o700))
	for name, content := range files {
		require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, version, name), content, 0o600))
	}
	require.NoError(m.t, os.Symlink(version, m.file("..next")))
	require.NoError(m.t, os.Rename(m.file("..next"), m.file("..data")))
}

// credentials are those of a client, as CA makes them of the same files (CA externalgrpc_cloud_provider.go).
func (m *mount) credentials() credentials.TransportCredentials {
	m.t.Helper()
	cert, err := tls.LoadX509KeyPair(m.file("tls.crt"), m.file("tls.key"))
	require.NoError(m.t, err)
	authorities, err := os.ReadFile(m.file("ca.crt"))
	require.NoError(m.t, err)
	pool := x509.NewCertPool()
	require.True(m.t, pool.AppendCertsFromPEM(authorities))
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert},
		RootCAs: pool})
}
