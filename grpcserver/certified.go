package grpcserver

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	expanderprotos "k8s.io/autoscaler/cluster-autoscaler/expander/grpcplugin/protos"
)

const expanderService = "grpcplugin.Expander"

var _ = expanderprotos.ExpanderServer(expander{})

// certified refuses, before a request is read, whatever comes over TLS without a client certificate, but for the
// expander: CA's client of that has none (CA expander/grpcplugin/grpc_client.go).
func certified(ctx context.Context, call *tap.Info) (context.Context, error) {
	if strings.HasPrefix(call.FullMethodName, "/"+expanderService+"/") {
		return ctx, nil
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ctx, status.Error(codes.Unauthenticated, "it is not known who calls")
	}
	if over, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(over.State.VerifiedChains) == 0 {
		return ctx, status.Error(codes.Unauthenticated, "without a client certificate only the expander answers")
	}
	return ctx, nil
}
