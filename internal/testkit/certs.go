package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Certificate is a certificate with its key. It is valid for some hours, even for a process whose clock is wrong by
// an hour.
type Certificate struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// NewAuthority returns a new self-signed certificate that may sign other certificates. It is also valid for a server
// on localhost. change may modify the template.
func NewAuthority(t testing.TB, change ...func(*x509.Certificate)) *Certificate {
	t.Helper()
	template := newTemplate(t, "test authority")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage |= x509.KeyUsageCertSign
	return sign(t, template, nil, change)
}

// Issue returns a new certificate for a server on localhost and for clients, signed by c. change may modify the
// template.
func (c *Certificate) Issue(t testing.TB, change ...func(*x509.Certificate)) *Certificate {
	t.Helper()
	template := newTemplate(t, "test")
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	return sign(t, template, c, change)
}

func newTemplate(t testing.TB, name string) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(3 * time.Hour),
	}
}

func sign(t testing.TB, template *x509.Certificate, by *Certificate, change []func(*x509.Certificate)) *Certificate {
	t.Helper()
	for _, c := range change {
		c(template)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.Cert, by.Key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &Certificate{Cert: cert, Key: key}
}

// PEM returns the certificate in PEM, without its key.
func (c *Certificate) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Cert.Raw})
}

// KeyPEM returns the private key in PEM.
func (c *Certificate) KeyPEM(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.Key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Pool returns a pool that trusts the certificates signed by c.
func (c *Certificate) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(c.Cert)
	return pool
}

// TLS returns the certificate in the form of crypto/tls.
func (c *Certificate) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{c.Cert.Raw}, PrivateKey: c.Key}
}

// Write writes the certificate and the key into files.
func (c *Certificate) Write(t testing.TB, certFile, keyFile string) {
	t.Helper()
	require.NoError(t, os.WriteFile(certFile, c.PEM(), 0o600))
	require.NoError(t, os.WriteFile(keyFile, c.KeyPEM(t), 0o600))
}
