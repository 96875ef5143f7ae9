package grpcserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// TLSFiles name the PEM files of mutual TLS. CA knows plaintext and mutual TLS only, nothing in between
// (CA externalgrpc_cloud_provider.go).
type TLSFiles struct {
	Cert string // our certificate, with its chain
	Key  string // its private key
	// ClientCA holds the certificates that may sign CA's client certificate. During a rotation: the old and the new one.
	ClientCA string
}

// TLS makes server credentials that read the files anew at each handshake, so a rotated certificate needs no restart. A
// file that cannot be read later on is logged, and the last good state stays in use.
func TLS(files TLSFiles, log *slog.Logger) (credentials.TransportCredentials, error) {
	if log == nil {
		log = slog.Default()
	}
	first, err := files.load()
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[tls.Config]
	last.Store(first)
	outer := first.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		fresh, err := files.load()
		if err != nil {
			log.Error("tls files cannot be used, the last good ones stay", "error", err)
			return last.Load(), nil
		}
		last.Store(fresh)
		return fresh, nil
	}
	return credentials.NewTLS(outer), nil
}

func (f TLSFiles) load() (*tls.Config, error) {
	if f.Cert == "" || f.Key == "" || f.ClientCA == "" {
		return nil, errors.New("load tls: name the certificate, its key and the client CA, or none of the three for plaintext")
	}
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, fmt.Errorf("load tls certificate: %w", err)
	}
	bundle, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("load tls client CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("load tls client CA: no PEM certificate in %s", f.ClientCA)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"h2"}, // grpc insists on it, also when the config comes from GetConfigForClient
		Certificates: []tls.Certificate{cert},
		ClientCAs:    pool,
		ClientAuth:   tls.RequireAndVerifyClientCert,
	}, nil
}
