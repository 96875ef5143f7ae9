package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/deploy/examples"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// Without TLS files, the command refuses to start. It does so before it listens or calls Temporal.
func TestServerRefusesPlaintextByDefault(t *testing.T) {
	groups := filepath.Join(t.TempDir(), "nodegroups.yaml")
	require.NoError(t, os.WriteFile(groups, examples.NodeGroups, 0o600))
	root := newRoot()
	root.SetArgs([]string{"grpcserver", "--config", groups, "--listen", "127.0.0.1:0", "--metrics-listen", "",
		"--health-listen", ""})
	require.ErrorContains(t, root.ExecuteContext(t.Context()), "--insecure-plaintext to let every client of the port")
}

// The list of permitted names is empty, for example because of an unset variable. The server must not accept every
// client then; it refuses to start.
func TestServerRefusesAnEmptyListOfNames(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	by := testkit.NewAuthority(t)
	require.NoError(t, os.WriteFile(in("ca.crt"), by.PEM(), 0o600))
	by.Issue(t).Write(t, in("tls.crt"), in("tls.key"))
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
