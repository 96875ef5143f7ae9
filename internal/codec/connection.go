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

// DialOption returns an option for a connection to Temporal that encrypts the payloads of requests and decrypts the
// payloads of responses. It does not encrypt search attributes, because Temporal must compare their values.
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
	// The order matters: the interceptor failures moves messages into payloads before the interceptor payloads
	// encrypts them.
	return grpc.WithChainUnaryInterceptor(copied, failures, payloads), nil
}

// copied passes a copy of the request to the next interceptors, because they change it. The SDK still needs the
// original request. It sends the request again if Temporal does not answer, and it keeps the results of local
// activities and side effects that are in the request.
func copied(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn, next grpc.UnaryInvoker,
	options ...grpc.CallOption) error {
	if message, ok := request.(proto.Message); ok {
		request = proto.Clone(message)
	}
	return next(ctx, method, request, answer, conn, options...)
}

// hide moves the message and the stack trace of a failure into a payload, which the next interceptor encrypts.
func hide(_ *proxy.VisitFailuresContext, f *failure.Failure) error {
	if f.GetEncodedAttributes() != nil { // a failure that Temporal sent and the SDK sends back already has this payload
		return nil
	}
	return converter.EncodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f)
}

// show moves the message and the stack trace back from the payload. It does not change a failure that was stored
// before the codec was enabled.
func show(_ *proxy.VisitFailuresContext, f *failure.Failure) error {
	if f.GetEncodedAttributes() != nil {
		converter.DecodeCommonFailureAttributes(converter.GetDefaultDataConverter(), f)
		f.EncodedAttributes = nil
	}
	return nil
}
