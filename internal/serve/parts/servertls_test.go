package parts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

func TestServerNeedsTLSOrPlaintext(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	by := testkit.NewAuthority(t)
	require.NoError(t, os.WriteFile(in("ca.crt"), by.PEM(), 0o600))
	by.Issue(t).Write(t, in("tls.crt"), in("tls.key"))
	all := grpcserver.TLSFiles{Cert: in("tls.crt"), Key: in("tls.key"), ClientCA: in("ca.crt")}
	for name, tc := range map[string]struct {
		flags ServerTLS
		why   string
		tls   bool
	}{
		"nothing": {ServerTLS{},
			"no TLS: give --tls-cert, --tls-key and --tls-client-ca, or --insecure-plaintext", false},
		"plaintext":     {ServerTLS{plaintext: true}, "", false},
		"tls":           {ServerTLS{Files: all}, "", true},
		"tls and names": {ServerTLS{Files: all, allowed: []string{"cluster-autoscaler"}}, "", true},
		"expander":      {ServerTLS{Files: all, expander: true}, "", true},
		"both":          {ServerTLS{Files: all, plaintext: true}, "give only one", false},
		"half": {ServerTLS{Files: grpcserver.TLSFiles{Cert: all.Cert}},
			"name the certificate, its key and the client CA", false},
		"names without tls": {ServerTLS{allowed: []string{"a"}}, "--tls-allowed-names needs mutual TLS", false},
		"names without tls, open": {ServerTLS{allowed: []string{"a"}, plaintext: true},
			"--tls-allowed-names needs mutual TLS", false},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := tc.flags.Options(quiet)
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

func TestDevServesPlaintextToThisMachineOnly(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:8086", "[::1]:8086", "localhost:8086"} {
		require.NoError(t, LoopbackOrPlaintext(listen, false))
	}
	for _, listen := range []string{":8086", "0.0.0.0:8086", "[::]:8086", "10.0.0.7:8086", "example.org:8086"} {
		require.ErrorContains(t, LoopbackOrPlaintext(listen, false), "--insecure-plaintext", listen)
		require.NoError(t, LoopbackOrPlaintext(listen, true))
	}
	require.ErrorContains(t, LoopbackOrPlaintext("8086", false), "--listen")
}
