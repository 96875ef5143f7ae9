package keep

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki holds the paths of the lab's certificates and keys: an authority for all clusters, a server certificate for all
// servers, a certificate of an administrator, and the key that signs the tokens of service accounts.
type pki struct {
	caCert, caKey, serverCert, serverKey, adminCert, adminKey, saKey, saPub string
}

// life is the time for which a certificate is valid. It is long enough for any lab, and short enough that a forgotten
// key soon becomes useless.
const life = 30 * 24 * time.Hour

// newPKI writes the certificates and keys into a folder. The server certificate is valid for loopback and for the
// given addresses.
func newPKI(dir string, addresses ...net.IP) (pki, error) {
	at := func(name string) string { return filepath.Join(dir, name) }
	p := pki{
		caCert: at("ca.crt"), caKey: at("ca.key"), serverCert: at("server.crt"), serverKey: at("server.key"),
		adminCert: at("admin.crt"), adminKey: at("admin.key"), saKey: at("sa.key"), saPub: at("sa.pub"),
	}
	return p, p.write(dir, addresses)
}

func (p pki) write(dir string, addresses []net.IP) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make lab certificates: %w", err)
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab-ca"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	caKey, err := issue(authority, nil, nil, p.caCert, p.caKey)
	if err != nil {
		return err
	}
	server := leaf(2, pkix.Name{CommonName: "lab-server"})
	server.IPAddresses = append([]net.IP{net.IPv4(127, 0, 0, 1)}, addresses...)
	server.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	_, errServer := issue(server, authority, caKey, p.serverCert, p.serverKey)
	admin := leaf(3, pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
	_, errAdmin := issue(admin, authority, caKey, p.adminCert, p.adminKey)
	return errors.Join(errServer, errAdmin, tokenKey(p.saKey, p.saPub))
}

func leaf(serial int64, name pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: name,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// issue generates a key, and writes the key and a certificate for it. The parent signs the certificate. If parent is
// nil, the certificate is self-signed.
func issue(template, parent *x509.Certificate, signer crypto.Signer, certPath, keyPath string) (crypto.Signer, error) {
	key, err := newKey(keyPath)
	if err != nil {
		return nil, err
	}
	if parent == nil {
		parent, signer = template, key
	}
	template.NotBefore = time.Now().Add(-2 * time.Hour) // clients' clocks may be behind
	template.NotAfter = template.NotBefore.Add(life)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign certificate %s: %w", template.Subject.CommonName, err)
	}
	return key, writePEM(certPath, "CERTIFICATE", der)
}

func tokenKey(private, public string) error {
	key, err := newKey(private)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("write token key: %w", err)
	}
	return writePEM(public, "PUBLIC KEY", der)
}

func newKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key %s: %w", filepath.Base(path), err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write key %s: %w", filepath.Base(path), err)
	}
	return key, writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("write lab certificates: %w", err)
	}
	return nil
}
