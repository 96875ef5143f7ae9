package main

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connect"
)

// stuckFrontend starts a frontend that answers in the same way as a dev server in which SQLite interrupts each query.
func stuckFrontend(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, call grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(call)
		switch {
		case strings.HasSuffix(method, "/GetSystemInfo"):
			return call.SendMsg(&workflowservice.GetSystemInfoResponse{ServerVersion: "1.29.1"})
		case strings.HasSuffix(method, "/GetClusterInfo"):
			return serviceerror.ToStatus(serviceerror.NewUnavailable(
				"GetClusterMetadata operation failed. Error: interrupted (9)")).Err()
		}
		return serviceerror.ToStatus(serviceerror.NewNamespaceNotFound("default")).Err()
	}))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

// If Temporal cannot read its database, doctor reports a finding of its own. The remedy is a restart of Temporal.
// Other commands name the restart in their error.
func TestDoctorRecognisesATemporalThatCannotReadItsDatabase(t *testing.T) {
	address := stuckFrontend(t)
	out, _, err := command(t.Context(), "doctor", "--no-cluster", "--temporal-address", address)
	require.ErrorContains(t, err, "this installation has errors")
	require.Contains(t, out, "error: Temporal: Temporal at "+address+" answers, but cannot read its database")
	require.Contains(t, out, "interrupted (9)")
	require.Contains(t, out, "[temporal-stuck]\n    do: restart Temporal")
	require.NotContains(t, out, "temporal-unreachable")

	_, _, err = command(t.Context(), "status", "--temporal-address", address)
	require.Equal(t, connect.ExitUnreachable, connect.ExitCode(err))
	require.ErrorContains(t, err, "restart it")
	require.NotContains(t, err.Error(), "temporal setup")
}
