package testkit

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Mount is a folder with the files of a Secret, which are exchanged atomically as by the kubelet: they are links into
// ..data, which is a link to the folder of a version.
type Mount struct {
	t       testing.TB
	dir     string
	mu      sync.RWMutex
	version int
}

// NewMount writes the files into a folder that is removed with the test.
func NewMount(t testing.TB, files map[string][]byte) *Mount {
	t.Helper()
	m := &Mount{t: t, dir: t.TempDir()}
	for name := range files {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), m.File(name)))
	}
	m.Write(files)
	return m
}

// File returns the path of a file, which is the same in all versions.
func (m *Mount) File(name string) string { return filepath.Join(m.dir, name) }

// Write exchanges the files atomically.
func (m *Mount) Write(files map[string][]byte) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.version++
	version := fmt.Sprintf("..%d", m.version)
	require.NoError(m.t, os.Mkdir(m.File(version), 0o700))
	for name, content := range files {
		require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, version, name), content, 0o600))
	}
	require.NoError(m.t, os.Symlink(version, m.File("..next")))
	require.NoError(m.t, os.Rename(m.File("..next"), m.File("..data")))
}

// ClientTLS returns a client's TLS config from tls.crt, tls.key and ca.crt of one version, as CA makes it (CA
// externalgrpc_cloud_provider.go).
func (m *Mount) ClientTLS() (*tls.Config, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	pair, err := tls.LoadX509KeyPair(m.File("tls.crt"), m.File("tls.key"))
	if err != nil {
		return nil, err
	}
	authorities, err := os.ReadFile(m.File("ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authorities) {
		return nil, fmt.Errorf("no certificate in %s", m.File("ca.crt"))
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: pool}, nil
}

// Secret returns a certificate with its key, and the authorities that its holder trusts: the files that cert-manager
// makes.
func (c *Certificate) Secret(t testing.TB, trusted ...*Certificate) map[string][]byte {
	t.Helper()
	var bundle []byte
	for _, a := range trusted {
		bundle = append(bundle, a.PEM()...)
	}
	return map[string][]byte{"tls.crt": c.PEM(), "tls.key": c.KeyPEM(t), "ca.crt": bundle}
}
