package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc"
	"k8s.io/autoscaler/cluster-autoscaler/config"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// caName is the name in Cluster Autoscaler's certificate, the only name that the gRPC server accepts.
const caName = "cluster-autoscaler"

// cloudConfig writes the file for CA's --cloud-config with the product's command. If client is nil, CA connects in
// plaintext. Otherwise client contains the certificate, the key and the CA certificate.
func (s *stack) cloudConfig(ctx context.Context, name, address string, client *testkit.Mount) string {
	s.t.Helper()
	args := []string{"config", "cloud-config", "--address", address, "--config", filepath.Join(s.dir, "groups.yaml")}
	if client == nil {
		args = append(args, "--plaintext")
	} else {
		args = append(args, "--cert", client.File("tls.crt"), "--key", client.File("tls.key"), "--cacert",
			client.File("ca.crt"))
	}
	out, err := s.try(ctx, nil, nil, s.binary, args...)
	require.NoError(s.t, err)
	path := filepath.Join(s.dir, name+".yaml")
	require.NoError(s.t, os.WriteFile(path, out, 0o600))
	return path
}

// realClient returns Cluster Autoscaler's own client with a direct connection to our server, without the proxy.
func (s *stack) realClient(ctx context.Context, name string, client *testkit.Mount) cloudprovider.CloudProvider {
	s.t.Helper()
	path := s.cloudConfig(ctx, "cloud-config-"+name, s.servers[0], client)
	return externalgrpc.BuildExternalGrpc(config.AutoscalingOptions{CloudConfig: path},
		cloudprovider.NodeGroupDiscoveryOptions{}, nil)
}

// mutualTLS requires that CA's own client and our server can connect by TLS. The server refuses other clients, and its
// log names the client and the reason.
func mutualTLS(ctx context.Context, t *testing.T, s *stack) {
	steps := newSteps(t)
	ca := s.realClient(ctx, "direct", s.clientTLS)
	require.NoError(t, ca.Refresh())
	require.Len(t, ca.NodeGroups(), 1)
	require.Equal(t, group, ca.NodeGroups()[0].Id())
	steps.done("CA's client accepted")

	ours, other := s.authority, newAuthority(t)
	for _, refused := range []struct {
		name   string
		client *testkit.Mount
		reason string // in the server's log
	}{
		{"name-not-allowed", testkit.NewMount(t, clientSecret(t, ours, "another-autoscaler", ours)),
			"names [another-autoscaler] are not among the allowed ones [cluster-autoscaler]"},
		{"another-authority", testkit.NewMount(t, clientSecret(t, other, caName, ours)),
			"certificate signed by unknown authority"},
		{"plaintext", nil, "first record does not look like a TLS handshake"},
	} {
		err := s.realClient(ctx, refused.name, refused.client).Refresh()
		require.Error(t, err, refused.name)
		t.Logf("%s: %v", refused.name, err)
		steps.until(ctx, refused.name+" refused", 30*time.Second, func(context.Context) error {
			return s.serverSays("client refused", refused.reason)
		})
	}
	err := s.realClient(ctx, "another-server", testkit.NewMount(t, clientSecret(t, ours, caName, other))).Refresh()
	require.ErrorContains(t, err, "certificate signed by unknown authority",
		"CA does not believe a server of another authority")

	certificatesRotated(ctx, t, s, ca, other)
}

// certificatesRotated replaces the server's files while it runs. New connections use the new files, and existing
// connections stay.
func certificatesRotated(ctx context.Context, t *testing.T, s *stack, in cloudprovider.CloudProvider,
	next *testkit.Certificate) {
	steps := newSteps(t)
	before, after := s.authority, testkit.NewMount(t, clientSecret(t, next, caName, next))
	require.Error(t, s.realClient(ctx, "too-early", after).Refresh())
	s.serverTLS.Write(serverSecret(t, next))
	ca := s.realClient(ctx, "rotated", after)
	require.NoError(t, ca.Refresh(), "the server shows its new certificate and believes the new authority")
	require.Len(t, ca.NodeGroups(), 1)
	require.Error(t, s.realClient(ctx, "too-late", testkit.NewMount(t, clientSecret(t, before, caName, next))).Refresh(),
		"the old authority is believed no longer")
	require.NoError(t, in.Refresh(), "an open connection stays")
	s.serverTLS.Write(serverSecret(t, before))
	require.NoError(t, s.realClient(ctx, "rotated-back", s.clientTLS).Refresh())
	require.Error(t, s.serverSays("last good ones stay"), "no half of a rotation was read")
	steps.done("certificates rotated, and back")
}

// serverSays requires a line in a gRPC server's log that contains all words.
func (s *stack) serverSays(words ...string) error {
	for _, path := range s.logs["grpcserver"] {
		log, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(log)) {
			if names(line, words...) == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("no gRPC server has logged a line with %q", words)
}
