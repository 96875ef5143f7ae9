package connect

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"go.temporal.io/sdk/contrib/envconfig"
	"google.golang.org/grpc/credentials"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/reload"
)

// follower implements credentials.TransportCredentials. For each handshake it uses the present contents of the files
// with the certificates and the key.
type follower struct {
	credentials.TransportCredentials
	latest func() *tls.Config
	cert   string // the path of the client certificate, for messages; "" without a file
}

// source is one part of the TLS settings: the path of a file, or the PEM data itself.
type source struct {
	path string
	data []byte
	name string
}

func (s source) given() bool { return s.path != "" || len(s.data) > 0 }

// newFollower reads the files to which the settings s refer. If s is nil, the client trusts the system's authorities
// and sends no certificate. If a file becomes invalid later, the follower writes an error to log and uses the last
// valid contents.
func newFollower(s *envconfig.ClientConfigTLS, log *slog.Logger) (*follower, error) {
	s = cmp.Or(s, &envconfig.ClientConfigTLS{})
	ca := source{s.ServerCACertPath, s.ServerCACertData, "authority"}
	cert := source{s.ClientCertPath, s.ClientCertData, "client certificate"}
	key := source{s.ClientKeyPath, s.ClientKeyData, "client key"}
	if cert.given() != key.given() {
		return nil, errors.New("TLS to Temporal: give the client certificate and its key, or neither")
	}
	var paths []string
	for _, from := range []source{ca, cert, key} {
		switch {
		case from.path != "" && len(from.data) > 0:
			return nil, fmt.Errorf("TLS to Temporal: the %s is given as file %s and as data: give one", from.name, from.path)
		case from.path != "":
			paths = append(paths, from.path)
		}
	}
	base := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName,
		InsecureSkipVerify: s.DisableHostVerification}
	files, err := reload.Open(func(contents [][]byte) (*tls.Config, error) {
		texts := [3][]byte{ca.data, cert.data, key.data}
		for i, from := range []source{ca, cert, key} {
			if from.path != "" {
				texts[i], contents = contents[0], contents[1:]
			}
		}
		return parse(base, texts, ca, cert)
	}, paths...)
	if err != nil {
		return nil, fmt.Errorf("TLS to Temporal: %w", err)
	}
	latest := func() *tls.Config {
		return files.Latest(log, "cannot use the TLS files for Temporal; their last valid contents stay in use")
	}
	return &follower{credentials.NewTLS(latest()), latest, cert.path}, nil
}

// parse returns a copy of base to which it has added the authority, the certificate and the key. texts contains these
// three in this order.
func parse(base *tls.Config, texts [3][]byte, ca, cert source) (*tls.Config, error) {
	config := base.Clone()
	if ca.given() {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(texts[0]) {
			return nil, fmt.Errorf("no PEM certificate in the authority %s", ca.path)
		}
	}
	if cert.given() {
		pair, err := tls.X509KeyPair(texts[1], texts[2])
		if err != nil {
			return nil, fmt.Errorf("client certificate %s and its key: %w", cert.path, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (f *follower) ClientHandshake(ctx context.Context, authority string,
	raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(f.latest()).ClientHandshake(ctx, authority, raw)
}

// Clone implements credentials.TransportCredentials.
func (f *follower) Clone() credentials.TransportCredentials {
	return &follower{f.TransportCredentials.Clone(), f.latest, f.cert}
}
