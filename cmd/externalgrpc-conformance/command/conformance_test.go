package command

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver/conformance"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// emptyProvider is a correct provider without node groups.
type emptyProvider struct {
	protos.UnimplementedCloudProviderServer
}

func (emptyProvider) Refresh(context.Context, *protos.RefreshRequest) (*protos.RefreshResponse, error) {
	return &protos.RefreshResponse{}, nil
}

func (emptyProvider) NodeGroups(context.Context, *protos.NodeGroupsRequest) (*protos.NodeGroupsResponse, error) {
	return &protos.NodeGroupsResponse{}, nil
}

func (emptyProvider) NodeGroupForNode(context.Context,
	*protos.NodeGroupForNodeRequest) (*protos.NodeGroupForNodeResponse, error) {
	return &protos.NodeGroupForNodeResponse{}, nil
}

func (emptyProvider) NodeGroupTargetSize(context.Context,
	*protos.NodeGroupTargetSizeRequest) (*protos.NodeGroupTargetSizeResponse, error) {
	return nil, status.Error(codes.NotFound, "none")
}

func (emptyProvider) NodeGroupNodes(context.Context,
	*protos.NodeGroupNodesRequest) (*protos.NodeGroupNodesResponse, error) {
	return nil, status.Error(codes.NotFound, "none")
}

func (emptyProvider) GPULabel(context.Context, *protos.GPULabelRequest) (*protos.GPULabelResponse, error) {
	return &protos.GPULabelResponse{}, nil
}

func (emptyProvider) GetAvailableGPUTypes(context.Context,
	*protos.GetAvailableGPUTypesRequest) (*protos.GetAvailableGPUTypesResponse, error) {
	return &protos.GetAvailableGPUTypesResponse{}, nil
}

func serveProvider(t *testing.T, provider protos.CloudProviderServer, options ...grpc.ServerOption) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(options...)
	protos.RegisterCloudProviderServer(server, provider)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-done)
	})
	return listener.Addr().String()
}

// run runs the command with these arguments and returns its output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := New()
	var out testkit.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// patient returns flags with a clock that does not move. With this clock, no call exceeds a time limit, even on a
// busy machine.
func patient() conformanceFlags {
	began := time.Now()
	return conformanceFlags{output: "json", Options: conformance.Options{Timeout: time.Minute,
		Clock: func() time.Time { return began }}}
}

func TestConformanceOfAServer(t *testing.T) {
	var out testkit.Buffer
	require.NoError(t, patient().run(t.Context(), serveProvider(t, emptyProvider{}), &out))
	var seen judged
	require.NoError(t, json.Unmarshal([]byte(out.String()), &seen))
	require.Zero(t, seen.Count(conformance.Failed), out.String())
	require.Positive(t, seen.Count(conformance.Passed))

	text, err := run(t, "--timeout", "1m",
		serveProvider(t, protos.UnimplementedCloudProviderServer{}))
	require.ErrorContains(t, err, "rules fail")
	require.Contains(t, text, "fix:  answer Refresh from the known state")
}

// The command connects in the same way as CA: with mutual TLS, and with the host name in the address. It returns an
// error if a TLS file is missing or not valid.
func TestConformanceOverTLS(t *testing.T) {
	dir, by := t.TempDir(), testkit.NewAuthority(t)
	cert, key, ca := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	by.Issue(t).Write(t, cert, key)
	require.NoError(t, os.WriteFile(ca, by.PEM(), 0o600))
	creds, err := grpcserver.TLS(grpcserver.TLSFiles{Cert: cert, Key: key, ClientCA: ca}, nil, nil)
	require.NoError(t, err)
	address := serveProvider(t, emptyProvider{}, grpc.Creds(creds))

	f := patient()
	require.ErrorContains(t, f.run(t.Context(), address, &testkit.Buffer{}), "no server answers at "+address)
	f.cert, f.key = cert, key
	require.ErrorContains(t, f.run(t.Context(), address, &testkit.Buffer{}), "has no TLS without all three")
	f.ca = ca
	require.NoError(t, f.run(t.Context(), address, &testkit.Buffer{}))
	f.ca = key
	require.ErrorContains(t, f.run(t.Context(), address, &testkit.Buffer{}), "no PEM certificate")
	f.ca, f.cert = ca, filepath.Join(dir, "none")
	require.ErrorIs(t, f.run(t.Context(), address, &testkit.Buffer{}), os.ErrNotExist)
}

func TestConformanceRefusesWrongFlags(t *testing.T) {
	for args, want := range map[string][]string{
		"want the provider's address":        {},
		"missing port":                       {"localhost"},
		"--change needs --group":             {"localhost:1", "--change"},
		"--group needs --change":             {"localhost:1", "--group", "a"},
		"--second needs --group":             {"localhost:1", "--second", "a"},
		"and names another node group":       {"localhost:1", "--change", "--group", "a", "--second", "a"},
		`--output "xml": use table`:          {"localhost:1", "-o", "xml"},
		"--timeout 0s: give more":            {"localhost:1", "--timeout", "0s"},
		"no server answers at 127.0.0.1:1: ": {"127.0.0.1:1"},
	} {
		_, err := run(t, want...)
		require.ErrorContains(t, err, args)
	}
	_, err := run(t, serveProvider(t, emptyProvider{}), "--change", "--group", "a",
		"--timeout", "1m")
	require.ErrorContains(t, err, "node group a: NodeGroups does not list it")
}
