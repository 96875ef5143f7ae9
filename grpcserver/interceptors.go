package grpcserver

import (
	"context"
	"log/slog"
	"path"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"
)

// recovery converts a panic of a handler into an error with the code Internal. Without it, a panic would end the
// server.
func recovery(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo,
		handler grpc.UnaryHandler) (resp any, err error) {
		defer func() {
			if r := recover(); r != nil {
				log.Error("rpc panicked", "rpc", path.Base(info.FullMethod), "panic", r, "stack", string(debug.Stack()))
				resp, err = nil, status.Errorf(codes.Internal, "%s: defect in the server, see its log", path.Base(info.FullMethod))
			}
		}()
		return handler(ctx, req)
	}
}

// logging logs one line per RPC: a read at the level debug, a mutation at info, and a failure at warn. An optional
// RPC that the server does not implement is not logged as a failure.
func logging(log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		began := time.Now()
		resp, err := handler(ctx, req)
		code, level := status.Code(err), slog.LevelDebug
		switch {
		case err != nil && code != codes.Unimplemented:
			level = slog.LevelWarn
		case mutates(req):
			level = slog.LevelInfo
		}
		if !log.Enabled(ctx, level) {
			return resp, err
		}
		attrs := append(facts(req), slog.Duration("duration", time.Since(began)), slog.String("code", code.String()))
		if err != nil {
			attrs = append(attrs, slog.String("error", status.Convert(err).Message()))
		}
		log.LogAttrs(ctx, level, "rpc", append([]slog.Attr{slog.String("rpc", path.Base(info.FullMethod))}, attrs...)...)
		return resp, err
	}
}

func mutates(req any) bool {
	switch req.(type) {
	case *protos.NodeGroupIncreaseSizeRequest, *protos.NodeGroupDecreaseTargetSizeRequest,
		*protos.NodeGroupDeleteNodesRequest:
		return true
	}
	return false
}

// facts returns the log attributes of a request.
func facts(req any) []slog.Attr {
	var attrs []slog.Attr
	if r, ok := req.(interface{ GetId() string }); ok {
		attrs = append(attrs, slog.String("group", r.GetId()))
	}
	if r, ok := req.(interface{ GetDelta() int32 }); ok {
		attrs = append(attrs, slog.Int("delta", int(r.GetDelta())))
	}
	switch r := req.(type) {
	case *protos.NodeGroupForNodeRequest:
		attrs = append(attrs, slog.String("node", r.GetNode().GetName()))
	case *protos.NodeGroupDeleteNodesRequest:
		ids := make([]string, len(r.GetNodes()))
		for i, n := range r.GetNodes() {
			ids[i] = n.GetProviderID()
		}
		attrs = append(attrs, slog.Any("instances", ids))
	}
	return attrs
}
