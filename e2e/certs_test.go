package e2e_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// newAuthority returns a certificate authority for one run of a suite. Every authority has the name that cert-manager
// gives the chart's authority. If a certificate is refused, the reason is therefore never the name of its issuer
// alone.
func newAuthority(t *testing.T) *testkit.Certificate {
	t.Helper()
	return testkit.NewAuthority(t, func(c *x509.Certificate) { c.Subject = pkix.Name{CommonName: "liqo-autoscaler-ca"} })
}

// serverSecret returns the Secret of the gRPC server in the form in which the chart mounts it. It contains the server's
// certificate and the authority of accepted clients.
func serverSecret(t *testing.T, a *testkit.Certificate) map[string][]byte {
	t.Helper()
	return a.Issue(t, func(c *x509.Certificate) {
		c.Subject, c.DNSNames, c.ExtKeyUsage = pkix.Name{}, nil, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}).Secret(t, a)
}

// clientSecret returns the Secret of Cluster Autoscaler. It contains a certificate with this name and the authority of
// trusted servers.
func clientSecret(t *testing.T, a *testkit.Certificate, name string, trusted *testkit.Certificate) map[string][]byte {
	t.Helper()
	return a.Issue(t, func(c *x509.Certificate) {
		c.Subject, c.DNSNames, c.IPAddresses = pkix.Name{CommonName: name}, nil, nil
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	}).Secret(t, trusted)
}

// credentialsOf returns the credentials of a client with this Secret.
func credentialsOf(t *testing.T, m *testkit.Mount) credentials.TransportCredentials {
	t.Helper()
	config, err := m.ClientTLS()
	require.NoError(t, err)
	return credentials.NewTLS(config)
}
