package ca_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/ca"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// stub answers three RPCs and refuses the rest.
type stub struct {
	protos.UnimplementedCloudProviderServer
}

func (stub) NodeGroupIncreaseSize(_ context.Context,
	r *protos.NodeGroupIncreaseSizeRequest) (*protos.NodeGroupIncreaseSizeResponse, error) {
	if r.GetDelta() > 3 {
		return nil, status.Error(codes.InvalidArgument, "past max")
	}
	return &protos.NodeGroupIncreaseSizeResponse{}, nil
}

func (stub) NodeGroupTemplateNodeInfo(context.Context,
	*protos.NodeGroupTemplateNodeInfoRequest) (*protos.NodeGroupTemplateNodeInfoResponse, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	res := &protos.NodeGroupTemplateNodeInfoResponse{NodeInfo: node}
	res.ProtoReflect().SetUnknown([]byte{0x12, 0x01, 'x'}) // field 2 belongs to the second wire generation
	return res, nil
}

func TestProxyPassesOnAndRecords(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	protos.RegisterCloudProviderServer(server, stub{})
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)

	file := filepath.Join(t.TempDir(), "calls.jsonl")
	proxy, err := ca.NewProxy([]string{l.Addr().String()}, file, ca.Transport{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	conn, err := grpc.NewClient(proxy.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	client := protos.NewCloudProviderClient(conn)

	_, err = client.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: "g", Delta: 2})
	require.NoError(t, err)
	_, err = client.NodeGroupIncreaseSize(ctx, &protos.NodeGroupIncreaseSizeRequest{Id: "g", Delta: 9})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	require.ErrorContains(t, err, "past max")
	template, err := client.NodeGroupTemplateNodeInfo(ctx, &protos.NodeGroupTemplateNodeInfoRequest{Id: "g"})
	require.NoError(t, err)
	require.Equal(t, "b", template.GetNodeInfo().GetLabels()["a"])
	require.Equal(t, []byte{0x12, 0x01, 'x'}, []byte(template.ProtoReflect().GetUnknown()),
		"fields the proxy does not know pass through")

	call, err := proxy.Await(ctx, 1, func(c ca.Call) bool { return c.Method == ca.IncreaseSize })
	require.NoError(t, err)
	require.Equal(t, 2, call.Seq)
	require.Equal(t, "InvalidArgument", call.Code)
	require.EqualValues(t, 9, call.Request.(*protos.NodeGroupIncreaseSizeRequest).GetDelta())
	require.Nil(t, call.Response)
	require.Len(t, proxy.Calls(ca.Call.OK), 2)

	written, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(string(written)), "\n"), 3)
	require.Contains(t, string(written), `"method":"NodeGroupIncreaseSize"`)
	require.Contains(t, string(written), `"labels":{"a":"b"}`)
}

func TestProxyAwaitIsBounded(t *testing.T) {
	proxy, err := ca.NewProxy([]string{"127.0.0.1:1"}, filepath.Join(t.TempDir(), "calls.jsonl"), ca.Transport{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = proxy.Await(ctx, 0, func(ca.Call) bool { return true })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
