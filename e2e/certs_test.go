package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
)

// authority signs certificates for one run of a suite. Its key is in memory only. All of them have the name that
// cert-manager gives the chart's, so that no certificate is held back for its issuer's name alone.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, cert: unsigned(t, "liqo-autoscaler-ca")}
	a.cert.IsCA, a.cert.BasicConstraintsValid, a.cert.KeyUsage = true, true, x509.KeyUsageCertSign
	a.key, a.pem = a.sign(a.cert)
	var err error
	block, _ := pem.Decode(a.pem)
	a.cert, err = x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return a
}

// server is the Secret of the gRPC server, as the chart mounts it: its certificate, and whom it lets in.
func (a *authority) server() map[string][]byte {
	cert := unsigned(a.t, "")
	cert.IPAddresses, cert.ExtKeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.secret(cert, a)
}

// client is the Secret of Cluster Autoscaler: a certificate with that name, and whose server it believes.
func (a *authority) client(name string, believes *authority) map[string][]byte {
	cert := unsigned(a.t, name)
	cert.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.secret(cert, believes)
}

func (a *authority) secret(cert *x509.Certificate, trusted *authority) map[string][]byte {
	key, chain := a.sign(cert)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	return map[string][]byte{"tls.crt": chain, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), "ca.crt": trusted.pem}
}

// sign gives a certificate a new key; the authority's own is signed by itself.
func (a *authority) sign(cert *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	signer := a.key
	if cert == a.cert {
		signer = key
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), signer)
	require.NoError(a.t, err)
	return key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func unsigned(t *testing.T, name string) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	require.NoError(t, err)
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(2 * time.Hour)}
}

// mount is a folder with the files of a Secret, exchanged all at once, as the kubelet does it: they are links into ..data,
// which is a link to the folder of a version.
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
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, RootCAs: pool})
}
