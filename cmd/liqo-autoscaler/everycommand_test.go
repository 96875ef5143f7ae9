package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// asking lists the commands that call Temporal, in the form in which this test runs them. The test replaces
// KUBECONFIG by the path of a kubeconfig for a cluster with one pod.
var asking = []string{
	"status", "report", "offers", "offers repin milan --kubeconfig KUBECONFIG", "demo",
	"explain instance std-1-1", "explain group std", "explain std", "explain pod shop/web-0 --kubeconfig KUBECONFIG",
	"doctor --no-cluster", "pause group std", "resume group std", "pause observer",
	"cordon provider milan", "uncordon provider milan",
	"temporal setup", "temporal adopt-hub --kubeconfig KUBECONFIG",
}

// notHere lists the other commands. worker and grpcserver wait for Temporal at their start; `make e2e
// SUITE=production` covers them. dev starts its own Temporal if none answers. The other commands do not call
// Temporal.
var notHere = []string{"worker", "grpcserver", "dev", "discovery", "config", "setup", "provider-access",
	"writers", "offers add", "offers put", "offers delete", "offers validate", "temporal codec", "completion", "help"}

// frontendWithout starts a Temporal frontend with mutual TLS and without namespaces.
func frontendWithout(t *testing.T, ca *testkit.Certificate) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{ca.Issue(t).TLS()},
		ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12})),
		grpc.UnknownServiceHandler(func(_ any, call grpc.ServerStream) error {
			if method, _ := grpc.MethodFromServerStream(call); strings.HasSuffix(method, "/GetSystemInfo") {
				return call.SendMsg(&workflowservice.GetSystemInfoResponse{})
			}
			return serviceerror.ToStatus(serviceerror.NewNamespaceNotFound("default")).Err()
		}))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// clusterWithAPod returns a kubeconfig for an API server with one pod and a Liqo cluster id. All other lists are empty.
func clusterWithAPod(t *testing.T) (kubeconfig string) {
	t.Helper()
	has := map[string]string{
		"web-0":      `{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web-0", "namespace": "shop"}}`,
		"configmaps": `{"kind": "ConfigMapList", "apiVersion": "v1", "items": [{"data": {"CLUSTER_ID": "rome"}}]}`,
		"namespaces": `{"kind": "NamespaceList", "apiVersion": "v1", "items": [{"metadata": {"name": "kube-system", "uid": "1"}}]}`,
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, cmp.Or(has[path.Base(r.URL.Path)], `{"kind": "List", "apiVersion": "v1", "items": []}`))
	}))
	t.Cleanup(api.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"clusters: [{name: c, cluster: {server: "+api.URL+"}}]\ncontexts: [{name: c, context: {cluster: c}}]\n"), 0o600))
	return kubeconfig
}

// Every command that calls Temporal can take all settings of its connection, including mutual TLS, from the
// environment. It reports a failed connection in one line and with its exit code.
func TestEveryCommandReportsAFailedConnection(t *testing.T) {
	dir, ca, other := t.TempDir(), testkit.NewAuthority(t), testkit.NewAuthority(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(in("ca"), ca.PEM(), 0o600))
	require.NoError(t, os.WriteFile(in("other-ca"), other.PEM(), 0o600))
	ca.Issue(t).Write(t, in("crt"), in("key"))
	ca.Issue(t, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }).Write(t, in("old-crt"),
		in("old-key"))
	address, kubeconfig := frontendWithout(t, ca), clusterWithAPod(t)
	for _, c := range []struct {
		address, ca, certificate string
		code                     int
		says                     string
	}{
		{address, "ca", "", connect.ExitNamespace, "has no namespace default: create it with liqo-autoscaler temporal setup"},
		{address, "other-ca", "", connect.ExitRefused, "is not among the authorities we trust"},
		{address, "ca", "old-", connect.ExitRefused, "expired on"},
		{testkit.FreePorts(t, 1)[0], "ca", "", connect.ExitUnreachable, "no process listens at Temporal's address"},
	} {
		t.Setenv("TEMPORAL_ADDRESS", c.address)
		t.Setenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH", in(c.ca))
		t.Setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", in(c.certificate+"crt"))
		t.Setenv("TEMPORAL_TLS_CLIENT_KEY_PATH", in(c.certificate+"key"))
		for _, line := range asking {
			args := strings.Fields(strings.ReplaceAll(line, "KUBECONFIG", kubeconfig))
			out, _, err := command(t.Context(), args...)
			if args[0] == "doctor" { // the line is part of its report
				require.ErrorContains(t, err, "this installation has errors")
				require.Contains(t, out, c.says)
				continue
			}
			require.ErrorContains(t, err, c.says, line)
			require.Equal(t, c.code, connect.ExitCode(err), line)
			require.NotContains(t, err.Error(), "\n", line)
			require.Empty(t, out, line)
		}
	}
}

// Each command is in one of the two lists, so that a developer cannot forget to add a new command.
func TestEveryCommandIsListed(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			name := strings.TrimPrefix(below.CommandPath(), "liqo-autoscaler ")
			if slices.Contains(notHere, name) {
				continue
			}
			require.True(t, slices.ContainsFunc(asking, func(line string) bool {
				return strings.HasPrefix(line+" ", name+" ")
			}), "does %s ask Temporal?", name)
			walk(below)
		}
	}
	walk(newRoot())
}
