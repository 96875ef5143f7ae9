package grpcserver

import (
	"context"
	"maps"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

const expanderService = "grpcplugin.Expander"

// These constants bound the running requests of callers without a certificate, because a request of the expander may
// be as large as 16 MiB.
const (
	anonymousRequests = 3 // of all addresses together
	anonymousTime     = 2 * time.Second
)

// maxConnections bounds the connections of all clients. A connection uses about 15 KB before its client is
// authenticated.
const maxConnections = 1000

// These constants bound each connection.
const (
	handshakeTime  = 5 * time.Second
	maxHeaderBytes = 16 << 10
	maxStreams     = 100
)

// admission decides, before the server reads the request of a call, whether to admit the call.
type admission struct {
	mu   sync.Mutex
	from map[string]context.Context // running requests of callers without a certificate, by address
}

// admit refuses a call over TLS without a client certificate. Calls of the expander are an exception, because CA's
// expander client has no certificate (CA expander/grpcplugin/grpc_client.go). For callers without a certificate,
// admit allows one running request per address, for at most anonymousTime. Therefore the requests from one address
// cannot use up the server's memory or all anonymousRequests.
func (d *admission) admit(ctx context.Context, call *tap.Info) (context.Context, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return ctx, status.Error(codes.Unauthenticated, "no peer information for this connection")
	}
	over, secure := p.AuthInfo.(credentials.TLSInfo)
	anonymous := !secure || len(over.State.VerifiedChains) == 0
	expander := strings.HasPrefix(call.FullMethodName, "/"+expanderService+"/")
	switch {
	case anonymous && expander:
		return d.reserve(ctx, p.Addr)
	case anonymous && secure:
		return ctx, status.Error(codes.Unauthenticated, "only calls of the expander need no client certificate")
	}
	return ctx, nil
}

// reserve counts the request until the request ends or anonymousTime has passed. A client that has received its
// answer can send the next request: gRPC ends the context of a call before it sends the answer (grpc
// internal/transport/http2_server.go, finishStream).
func (d *admission) reserve(ctx context.Context, of net.Addr) (context.Context, error) {
	address := of.String()
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.from, func(_ string, request context.Context) bool { return request.Err() != nil })
	switch {
	case d.from[address] != nil:
		return ctx, status.Error(codes.ResourceExhausted, "another request from this address is running")
	case len(d.from) >= anonymousRequests:
		return ctx, status.Error(codes.ResourceExhausted, "too many requests of clients without a certificate are running")
	case d.from == nil:
		d.from = map[string]context.Context{}
	}
	ctx, cancel := context.WithTimeout(ctx, anonymousTime)
	context.AfterFunc(ctx, cancel)
	d.from[address] = ctx
	return ctx, nil
}
