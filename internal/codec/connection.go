package codec

import (
	"context"
	"fmt"

	"go.temporal.io/api/failure/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// DialOption makes a connection to Temporal encrypt the payloads of requests and decrypt the payloads of answers.
// Search attributes stay plain: Temporal must compare them.
func (c *Codec) DialOption() (grpc.DialOption, error) {
	failures, err := proxy.NewFailureVisitorInterceptor(proxy.FailureVisitorInterceptorOptions{
		Outbound: &proxy.VisitFailuresOptions{Visitor: hide},
		Inbound:  &proxy.VisitFailuresOptions{Visitor: show},
	})
	if err != nil {
		return nil, fmt.Errorf("encrypt failures: %w", err)
	}
	payloads, err := converter.NewPayloadCodecGRPCClientInterceptor(converter.PayloadCodecGRPCClientInterceptorOptions{
		Codecs: []converter.PayloadCodec{c}})
	if err != nil {
		return nil, fmt.Errorf("encrypt payloads: %w", err)
	}
	return grpc.WithChainUnaryInterceptor(copied, failures, payloads), nil // a failure's message becomes a payload first
}

// copied lets the next interceptors change a copy of the request. The SDK sends a request again when Temporal does not
// answer, and keeps results of local activities and side effects that are in it.
func copied(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, next grpc.UnaryInvoker,
	options ...grpc.CallOption) error {
	if message, ok := request.(proto.Message); ok {
		request = proto.Clone(message)
	}
	return next(ctx, method, request, answer, conn, options...)
}

// hide moves the message and the stack trace of a failure into a payload, which is then encrypted.
func hide(_ *proxy.VisitFailuresContext, f *failure.Failure) error {
	if f.GetEncodedAttributes() != nil { // received so, and sent on
		return nil
	}
	return converter.EncodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f)
}

// show is the reverse of hide. A failure from before the codec has no such payload.
func show(_ *proxy.VisitFailuresContext, f *failure.Failure) error {
	if f.GetEncodedAttributes() != nil {
		converter.DecodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f)
		f.EncodedAttributes = nil
	}
	return nil
}
