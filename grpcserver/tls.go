package grpcserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/grpc/credentials"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connlimit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/logonce"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
)

// TLSFiles contains the paths of the PEM files for mutual TLS. CA supports only plaintext and mutual TLS (CA
// externalgrpc_cloud_provider.go).
type TLSFiles struct {
	Cert string // our certificate, with its chain
	Key  string // its private key
	// ClientCA holds the certificates that may sign CA's client certificate. During a rotation it holds the old and the
	// new certificate.
	ClientCA string
	// Anonymous reports whether clients without a certificate may connect. Serve then answers only their calls of the
	// expander service.
	Anonymous bool
}

// TLS returns server credentials. They read changed files again, so that a new certificate or client CA needs no
// restart. If changed files cannot be used, the credentials log this and keep using the last good files. A client
// needs a certificate that ClientCA signed. If allowed is not empty, the certificate must also have one of the
// allowed names: as a SAN of any kind, or as the common name of its subject. The credentials log each refused client
// with the reason and the client's names.
func TLS(files TLSFiles, allowed []string, log *slog.Logger) (credentials.TransportCredentials, error) {
	if log == nil {
		log = slog.Default()
	}
	if slices.Contains(allowed, "") {
		return nil, errors.New("load tls: an allowed name is empty")
	}
	if files.Cert == "" || files.Key == "" || files.ClientCA == "" {
		return nil, errors.New("load tls: name the certificate, its key and the client CA, " +
			"or none of the three for plaintext")
	}
	parse := func(pem [][]byte) (*tls.Config, error) { return files.config(pem[0], pem[1], pem[2], allowed) }
	configs, err := reload.Open(parse, files.Cert, files.Key, files.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("load tls: %w", err)
	}
	latest := func() *tls.Config {
		return configs.Latest(log, "tls files cannot be used, the last good ones stay in use")
	}
	outer := latest().Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return latest(), nil }
	return handshakeLogger{credentials.NewTLS(outer), log, &logonce.EachSecond{}}, nil
}

func (f TLSFiles) config(cert, key, clientCA []byte, allowed []string) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(clientCA) {
		return nil, fmt.Errorf("no PEM certificate in the client CA %s", f.ClientCA)
	}
	auth := tls.RequireAndVerifyClientCert
	if f.Anonymous {
		auth = tls.VerifyClientCertIfGiven
	}
	return &tls.Config{
		MinVersion:       tls.VersionTLS12,
		NextProtos:       []string{"h2"}, // grpc requires it, also when the config comes from GetConfigForClient
		Certificates:     []tls.Certificate{pair},
		ClientCAs:        pool,
		ClientAuth:       auth,
		VerifyConnection: allow(allowed),
		// A resumed session would skip the checks of a changed client CA.
		SessionTicketsDisabled: true,
	}, nil
}

// allow returns a function that accepts a verified client certificate only if the certificate has one of the names.
// Without names, allow returns nil, and every verified certificate is accepted.
func allow(names []string) func(tls.ConnectionState) error {
	if len(names) == 0 {
		return nil
	}
	return func(c tls.ConnectionState) error {
		if len(c.PeerCertificates) == 0 { // possible only if ClientAuth allows it; see admission.admit
			return nil
		}
		came := namesOf(c.PeerCertificates[0])
		if slices.ContainsFunc(came, func(name string) bool { return slices.Contains(names, name) }) {
			return nil
		}
		return fmt.Errorf("the client certificate's names %s are not among the allowed ones %s", list(came), list(names))
	}
}

// namesOf returns the SANs and the common name of a certificate.
func namesOf(c *x509.Certificate) []string {
	names := slices.Concat(c.DNSNames, c.EmailAddresses)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	for _, uri := range c.URIs {
		names = append(names, uri.String())
	}
	if c.Subject.CommonName != "" {
		names = append(names, c.Subject.CommonName)
	}
	return names
}

func list(names []string) string { return "[" + strings.Join(names, ", ") + "]" }

// handshakeLogger logs failed handshakes, which gRPC does not log, and marks connections whose client has a verified
// certificate.
type handshakeLogger struct {
	credentials.TransportCredentials
	log     *slog.Logger
	refused *logonce.EachSecond
}

// ServerHandshake runs the TLS handshake. It logs a failure and marks a connection with a verified certificate.
func (d handshakeLogger) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := d.TransportCredentials.ServerHandshake(raw)
	if over, ok := info.(credentials.TLSInfo); ok && err == nil && len(over.State.VerifiedChains) > 0 {
		connlimit.Keep(raw)
	}
	if err != nil {
		d.refuse(raw.RemoteAddr(), err)
	}
	return conn, info, err
}

func (d handshakeLogger) refuse(address net.Addr, err error) {
	level := slog.LevelWarn
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) { // a probe closed the connection
		level = slog.LevelDebug
	}
	if !d.log.Enabled(context.Background(), level) {
		return
	}
	if untold, tell := d.refused.Next(); tell {
		d.log.Log(context.Background(), level, "client refused", "address", address.String(), "error", err,
			"more", untold)
	}
}

// Clone returns a copy of the credentials. The copy uses the same logger.
func (d handshakeLogger) Clone() credentials.TransportCredentials {
	return handshakeLogger{d.TransportCredentials.Clone(), d.log, d.refused}
}
