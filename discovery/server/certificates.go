package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
)

// tls returns the configuration for connections of clients. The handshake does not verify the client's certificate,
// because a client that the handshake refuses does not receive the reason. Instead the server verifies the
// certificate for each request. Therefore it also refuses requests on an existing connection when the client's
// certificate has expired.
func (s *Server) tls(certificates *Certificates) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificates.get}
	if s.options.ClientAuthorities != nil {
		config.ClientAuth = tls.RequestClientCert
	}
	return config
}

// Certificates holds the server's certificate and key, and reads them again when their files change, for example when
// cert-manager renews the certificate.
type Certificates struct {
	files *reload.Files[*tls.Certificate]
	log   *slog.Logger
}

// LoadCertificates reads the files of the certificate and the key for the first time.
func LoadCertificates(certFile, keyFile string, log *slog.Logger) (*Certificates, error) {
	parse := func(contents [][]byte) (*tls.Certificate, error) {
		pair, err := tls.X509KeyPair(contents[0], contents[1])
		return &pair, err
	}
	files, err := reload.Open(parse, certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("load server certificate: %w", err)
	}
	return &Certificates{files, log}, nil
}

func (c *Certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.files.Latest(c.log, "server certificate cannot be reloaded; the last valid one stays in use"), nil
}

// Authorities holds the authorities that sign client certificates, and reads them again when their file changes.
type Authorities struct {
	files *reload.Files[*x509.CertPool]
	log   *slog.Logger
}

// LoadAuthorities reads the file of the authorities for the first time.
func LoadAuthorities(caFile string, log *slog.Logger) (*Authorities, error) {
	files, err := reload.Open(func(contents [][]byte) (*x509.CertPool, error) {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(contents[0]) {
			return nil, fmt.Errorf("%s contains no certificate in PEM", caFile)
		}
		return pool, nil
	}, caFile)
	if err != nil {
		return nil, fmt.Errorf("load client authorities: %w", err)
	}
	return &Authorities{files, log}, nil
}

// maxChain bounds the number of certificates in a client's chain. Go checks the signatures of all intermediates with
// the same name. The check of a hundred such signatures takes half a second of CPU time.
const maxChain = 5

// verify verifies a client's chain, and returns the URIs in the first certificate. The first certificate is the
// client's own.
func (a *Authorities) verify(chain []*x509.Certificate, now time.Time) ([]*url.URL, error) {
	if len(chain) > maxChain {
		return nil, fmt.Errorf("the client sends %d certificates: send the client certificate and at most %d intermediates",
			len(chain), maxChain-1)
	}
	options := x509.VerifyOptions{CurrentTime: now, Intermediates: x509.NewCertPool(),
		Roots:     a.files.Latest(a.log, "client authorities cannot be reloaded; the last valid ones stay in use"),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(options)
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return nil, fmt.Errorf("the client certificate is valid from %s to %s, but the time is %s: renew it",
			chain[0].NotBefore.UTC().Format(time.RFC3339), chain[0].NotAfter.UTC().Format(time.RFC3339),
			now.UTC().Format(time.RFC3339))
	case err != nil:
		return nil, fmt.Errorf("the client certificate cannot be used: %w", err)
	}
	return chain[0].URIs, nil
}
