package grpcserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// TestSilentConnectionsBlockNoClient opens more connections than the server accepts, from the address of Cluster
// Autoscaler and without a handshake. Cluster Autoscaler's connection stays open, and a new client can connect. The
// number of log lines does not grow with the number of connections.
func TestSilentConnectionsBlockNoClient(t *testing.T) {
	address, _, authority, logs := tlsSite(t)
	pair := authority.Issue(t).TLS()
	config := credentials.NewTLS(&tls.Config{RootCAs: authority.Pool(), ServerName: "localhost",
		Certificates: []tls.Certificate{pair}})
	var dialed atomic.Int32
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(config),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			dialed.Add(1)
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}))
	require.NoError(t, err)
	defer conn.Close()
	ask := func() error {
		_, err := protos.NewCloudProviderClient(conn).NodeGroups(t.Context(), &protos.NodeGroupsRequest{})
		return err
	}
	require.NoError(t, ask())

	var stranger net.Dialer // uses the address of Cluster Autoscaler
	var first net.Conn
	for range maxConnections + 200 {
		c, err := stranger.DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		first = cmp.Or(first, c)
	}
	_, err = first.Read(make([]byte, 1))
	require.Error(t, err, "the server has closed its oldest")
	_, err = call(t, address, config)
	require.NoError(t, err, "a new client")
	require.NoError(t, ask())
	require.EqualValues(t, 1, dialed.Load(), "the connection has stayed")
	require.LessOrEqual(t, strings.Count(logs.String(), "client refused"), 100)
}
