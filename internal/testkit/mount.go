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

// Mount is a folder with the files of a Secret. The files are replaced atomically, in the same way as the kubelet
// replaces them: they are links into ..data, and ..data is a link to the folder of one version.
type Mount struct {
	t       testing.TB
	dir     string
	mu      sync.RWMutex
	version int
}

// NewMount returns a Mount with the files. The folder is removed when the test ends.
func NewMount(t testing.TB, files map[string][]byte) *Mount {
	t.Helper()
	m := &Mount{t: t, dir: t.TempDir()}
	for name := range files {
		require.NoError(t, os.Symlink(filepath.Join("..data", name), m.File(name)))
	}
	m.Write(files)
	return m
}

// File returns the path of a file. The path is the same in all versions.
func (m *Mount) File(name string) string { return filepath.Join(m.dir, name) }

// Write replaces the files atomically.
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

// ClientTLS returns a client's TLS config that is made from tls.crt, tls.key and ca.crt of the same version. It makes
// the config in the same way as Cluster Autoscaler (its externalgrpc_cloud_provider.go).
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

// Secret returns the files of a Secret in the form in which cert-manager writes them: the certificate, its key, and
// the trusted authorities.
func (c *Certificate) Secret(t testing.TB, trusted ...*Certificate) map[string][]byte {
	t.Helper()
	var bundle []byte
	for _, a := range trusted {
		bundle = append(bundle, a.PEM()...)
	}
	return map[string][]byte{"tls.crt": c.PEM(), "tls.key": c.KeyPEM(t), "ca.crt": bundle}
}
