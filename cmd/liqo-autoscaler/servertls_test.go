package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
)

func TestTransportMustBeChosen(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, testCertificate(in("ca.crt"), in("tls.crt"), in("tls.key"), "localhost"))
	all := grpcserver.TLSFiles{Cert: in("tls.crt"), Key: in("tls.key"), ClientCA: in("ca.crt")}
	for name, tc := range map[string]struct {
		flags serverTLS
		why   string
		tls   bool
	}{
		"nothing": {serverTLS{},
			"no TLS: give --tls-cert, --tls-key and --tls-client-ca, or --insecure-plaintext", false},
		"plaintext":     {serverTLS{plaintext: true}, "", false},
		"tls":           {serverTLS{files: all}, "", true},
		"tls and names": {serverTLS{files: all, allowed: []string{"cluster-autoscaler"}}, "", true},
		"expander":      {serverTLS{files: all, expander: true}, "", true},
		"both":          {serverTLS{files: all, plaintext: true}, "exclude each other", false},
		"half": {serverTLS{files: grpcserver.TLSFiles{Cert: all.Cert}},
			"name the certificate, its key and the client CA", false},
		"names without tls": {serverTLS{allowed: []string{"a"}}, "--tls-allowed-names needs mutual TLS", false},
		"names without tls, open": {serverTLS{allowed: []string{"a"}, plaintext: true},
			"--tls-allowed-names needs mutual TLS", false},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := tc.flags.options(quiet)
			if tc.why != "" {
				require.ErrorContains(t, err, tc.why)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.tls, options.Credentials != nil)
			require.Equal(t, tc.flags.expander, options.Expander)
		})
	}
}

// The command itself refuses, before it listens or asks Temporal anything.
func TestServerRefusesPlaintextByDefault(t *testing.T) {
	groups := filepath.Join(t.TempDir(), "nodegroups.yaml")
	require.NoError(t, os.WriteFile(groups, examples.NodeGroups, 0o600))
	root := newRoot()
	root.SetArgs([]string{"grpcserver", "--config", groups, "--listen", "127.0.0.1:0", "--metrics-listen", "",
		"--health-listen", ""})
	require.ErrorContains(t, root.ExecuteContext(t.Context()), "--insecure-plaintext to let anybody who reaches the port")
}

// An empty list of names, as from a variable that is not set, must not let everybody in.
func TestServerRefusesNoAllowedNames(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, testCertificate(in("ca.crt"), in("tls.crt"), in("tls.key"), "localhost"))
	require.NoError(t, os.WriteFile(in("nodegroups.yaml"), examples.NodeGroups, 0o600))
	root := newRoot()
	root.SetArgs([]string{"grpcserver", "--config", in("nodegroups.yaml"), "--listen", "127.0.0.1:0", "--metrics-listen",
		"", "--health-listen", "",
		"--temporal-address", "127.0.0.1:1", "--tls-cert", in("tls.crt"), "--tls-key", in("tls.key"), "--tls-client-ca",
		in("ca.crt"), "--tls-allowed-names", ""})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.ErrorContains(t, root.ExecuteContext(ctx), "--tls-allowed-names is empty")
}

func TestDevServesPlaintextToThisMachineOnly(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:8086", "[::1]:8086", "localhost:8086"} {
		require.NoError(t, loopbackOrPlaintext(listen, false))
	}
	for _, listen := range []string{":8086", "0.0.0.0:8086", "[::]:8086", "10.0.0.7:8086", "example.org:8086"} {
		require.ErrorContains(t, loopbackOrPlaintext(listen, false), "--insecure-plaintext", listen)
		require.NoError(t, loopbackOrPlaintext(listen, true))
	}
	require.ErrorContains(t, loopbackOrPlaintext("8086", false), "--listen")
}
