package conformance

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// wired calls a server in this process, with requests and answers in their wire encoding. The breaks are interceptors.
type wired struct {
	server protos.CloudProviderServer
	broken grpc.UnaryServerInterceptor
}

func (w wired) client() protos.CloudProviderClient { return protos.NewCloudProviderClient(w) }

// Invoke implements grpc.ClientConnInterface.
func (w wired) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	for _, m := range protos.CloudProvider_ServiceDesc.Methods {
		if !strings.HasSuffix(method, "/"+m.MethodName) {
			continue
		}
		resp, err := m.Handler(w.server, ctx, func(in any) error { return copyOver(args, in) }, w.broken)
		if err != nil {
			return err
		}
		return copyOver(resp, reply)
	}
	return errors.New("no such method")
}

// NewStream implements grpc.ClientConnInterface.
func (w wired) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.New("there are no streams")
}

func copyOver(from, to any) error {
	raw, err := proto.Marshal(from.(proto.Message))
	if err != nil {
		return err
	}
	return proto.Unmarshal(raw, to.(proto.Message))
}
