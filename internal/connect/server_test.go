package connect_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func TestMain(m *testing.M) {
	for _, pair := range os.Environ() { // without the developer's own Temporal settings
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TEMPORAL_") {
			_ = os.Unsetenv(name)
		}
	}
	_ = os.Setenv("XDG_CONFIG_HOME", os.DevNull)
	os.Exit(m.Run())
}

// frontend is a fake Temporal frontend with one namespace, "there". It records its clients.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	address string

	mu      sync.Mutex
	clients []string // serial numbers of their certificates
	keys    []string
	refuse  error
	unread  error // the answer to GetClusterInfo, which Temporal reads from its database
}

func (f *frontend) GetClusterInfo(context.Context,
	*workflowservice.GetClusterInfoRequest) (*workflowservice.GetClusterInfoResponse, error) {
	return &workflowservice.GetClusterInfoResponse{}, serviceerror.ToStatus(f.unread).Err()
}

func (f *frontend) GetSystemInfo(context.Context,
	*workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *frontend) DescribeNamespace(ctx context.Context,
	in *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.PeerCertificates) > 0 {
			f.clients = append(f.clients, info.State.PeerCertificates[0].SerialNumber.String())
		}
	}
	md, _ := metadata.FromIncomingContext(ctx)
	f.keys = append(f.keys, md.Get("authorization")...)
	if f.refuse != nil {
		return nil, serviceerror.ToStatus(f.refuse).Err()
	}
	if in.GetNamespace() != "there" {
		return nil, serviceerror.ToStatus(serviceerror.NewNamespaceNotFound(in.GetNamespace())).Err()
	}
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

// serve starts a frontend. The frontend uses TLS unless config is nil.
func serve(t *testing.T, config *tls.Config) *frontend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var options []grpc.ServerOption
	if config != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(config)))
	}
	s, f := grpc.NewServer(options...), &frontend{address: l.Addr().String()}
	workflowservice.RegisterWorkflowServiceServer(s, f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return f
}

// pki is a certificate authority that has issued certificates for a server and a client. All are in files.
type pki struct {
	ca                    *testkit.Certificate
	caFile, cert, keyFile string
}

func newPKI(t *testing.T) pki {
	t.Helper()
	dir := t.TempDir()
	p := pki{testkit.NewAuthority(t), filepath.Join(dir, "ca.crt"), filepath.Join(dir, "tls.crt"),
		filepath.Join(dir, "tls.key")}
	require.NoError(t, os.WriteFile(p.caFile, p.ca.PEM(), 0o600))
	p.ca.Issue(t).Write(t, p.cert, p.keyFile)
	return p
}

// server returns the TLS config of a frontend that requires client certificates.
func (p pki) server(t *testing.T, change ...func(*x509.Certificate)) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{p.ca.Issue(t, change...).TLS()}, ClientCAs: p.ca.Pool(),
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
}

func (p pki) flags(address string) connect.Flags {
	return connect.Flags{Address: address, Namespace: "there", CA: p.caFile, Cert: p.cert, Key: p.keyFile}
}

// dial opens the target that the flags describe, and returns a client for it.
func dial(t *testing.T, f connect.Flags) (*connect.Target, client.Client) {
	t.Helper()
	target, err := f.Open(slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	o := target.Options()
	o.Logger = quiet{}
	c, err := client.NewLazyClient(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return target, c
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
