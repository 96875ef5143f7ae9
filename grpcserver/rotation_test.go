package grpcserver

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

// Scenario S35: the certificates and authorities of the server and of the client are rotated while clients call.
// First both authorities are trusted, then the new authority signs the certificates, and then the old authority is
// removed. No call fails, on existing or on new connections, and no process reads a half-written file.
func TestS35RotationUnderLoad(t *testing.T) {
	was, will := testkit.NewAuthority(t), testkit.NewAuthority(t)
	server := testkit.NewMount(t, was.Issue(t, numbered(1)).Secret(t, was))
	client := testkit.NewMount(t, was.Issue(t).Secret(t, was))
	logs := &testkit.Buffer{}
	creds, err := TLS(TLSFiles{Cert: server.File("tls.crt"), Key: server.File("tls.key"), ClientCA: server.File("ca.crt")},
		[]string{"localhost"}, slog.New(slog.NewTextHandler(logs, nil)))
	require.NoError(t, err)
	address := serveTCP(t, loaded(t, newFake(), specs("cpu")...), creds)
	old, err := client.ClientTLS()
	require.NoError(t, err)
	stays := dialTLS(t, address, credentials.NewTLS(old))
	ask := func(ctx context.Context, conn *grpc.ClientConn) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		_, err := protos.NewCloudProviderClient(conn).NodeGroups(ctx, &protos.NodeGroupsRequest{})
		return err
	}
	everybodyIsBack, end := testkit.Load(t, 4, func(ctx context.Context) error {
		config, err := client.ClientTLS()
		if err != nil {
			return err
		}
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := ask(ctx, conn); err != nil {
			return fmt.Errorf("on a new connection: %w", err)
		}
		if err := ask(ctx, stays); err != nil {
			return fmt.Errorf("on the connection that stays: %w", err)
		}
		return nil
	})

	everybodyIsBack()
	server.Write(was.Issue(t, numbered(2)).Secret(t, was, will))
	client.Write(was.Issue(t).Secret(t, was, will))
	everybodyIsBack()
	server.Write(will.Issue(t, numbered(3)).Secret(t, was, will))
	client.Write(will.Issue(t).Secret(t, was, will))
	everybodyIsBack()
	server.Write(will.Issue(t, numbered(4)).Secret(t, will))
	client.Write(will.Issue(t).Secret(t, will))
	everybodyIsBack()
	end()
	require.Empty(t, logs.String())

	fresh, err := client.ClientTLS()
	require.NoError(t, err)
	serial, err := call(t, address, credentials.NewTLS(fresh))
	require.NoError(t, err)
	require.EqualValues(t, 4, serial, "new connections meet the new certificate")
	old.RootCAs = will.Pool()
	_, err = call(t, address, credentials.NewTLS(old))
	requireCode(t, codes.Unavailable, err)
}

func dialTLS(t *testing.T, address string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	return conn
}
