package connect_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// While calls to Temporal run, our certificate and the authorities of both sides are replaced. No call fails, on
// existing or on new connections.
func TestRotationUnderLoad(t *testing.T) {
	was, will := newPKI(t), newPKI(t)
	ours := testkit.NewMount(t, was.ca.Issue(t).Secret(t, was.ca))
	var current atomic.Pointer[tls.Config]
	show := func(config *tls.Config) {
		config.ClientCAs = was.ca.Pool()
		config.ClientCAs.AddCert(will.ca.Cert)
		config.NextProtos = []string{"h2"}
		current.Store(config)
	}
	show(was.server(t))
	f := serve(t, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return current.Load(), nil }})
	target, client := dial(t, connect.Flags{Address: f.address, Namespace: "there", CA: ours.File("ca.crt"),
		Cert: ours.File("tls.crt"), Key: ours.File("tls.key")})
	// connectAnew opens a new connection and returns the certificate that Temporal presents.
	connectAnew := func(ctx context.Context) (*x509.Certificate, error) {
		raw, err := new(net.Dialer).DialContext(ctx, "tcp", f.address)
		if err != nil {
			return nil, err
		}
		defer raw.Close()
		_, info, err := target.Handshake().ClientHandshake(ctx, "127.0.0.1", raw)
		if err != nil {
			return nil, err
		}
		return info.(credentials.TLSInfo).State.PeerCertificates[0], nil
	}
	everybodyIsBack, end := testkit.Load(t, 4, func(ctx context.Context) error {
		if _, err := connectAnew(ctx); err != nil {
			return err
		}
		if err := target.Reach(ctx); err != nil {
			return err
		}
		return target.Check(ctx, client)
	})
	everybodyIsBack()
	ours.Write(was.ca.Issue(t).Secret(t, was.ca, will.ca))
	everybodyIsBack()
	show(will.server(t))
	everybodyIsBack()
	ours.Write(will.ca.Issue(t).Secret(t, will.ca))
	everybodyIsBack()
	end()
	shown, err := connectAnew(t.Context())
	require.NoError(t, err)
	require.Equal(t, current.Load().Certificates[0].Certificate[0], shown.Raw)
}
