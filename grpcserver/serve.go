package grpcserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"k8s.io/autoscaler/cluster-autoscaler/cloudprovider/externalgrpc/protos"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/connlimit"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// These are the times of connections.
const (
	// maxConnectionAge makes clients reconnect, so that expired client certificates are detected and replicas share the
	// load.
	maxConnectionAge = time.Hour
	// pingAfter and pingTimeout detect connections whose client is gone without closing them.
	pingAfter   = time.Minute
	pingTimeout = 10 * time.Second
	// DefaultStopGrace is the time for running RPCs when the server stops. It is longer than CA waits for an RPC.
	DefaultStopGrace = 6 * time.Second
)

// ServeOptions configures Serve. The zero value serves plaintext.
type ServeOptions struct {
	// Credentials secure the transport; nil means plaintext, which CA uses when its cloud-config names no cert. See TLS.
	Credentials credentials.TransportCredentials
	// Interceptors run around every RPC, the first one outermost. Metrics use them.
	Interceptors []grpc.UnaryServerInterceptor
	// Calls, if not nil, observes the start and end of every RPC, outside all interceptors. Traces use it.
	Calls stats.Handler
	// LameDuck is the time after the end of ctx during which the server still answers new RPCs while its health is
	// NOT_SERVING. It should be as long as a Service needs to remove the endpoint. CA does not retry, and loses its
	// scale-down timers after a failed call.
	LameDuck time.Duration
	// Expander also serves CA's --expander=grpc. The expander's client has no certificate, so TLS needs
	// TLSFiles.Anonymous.
	Expander bool
	// StopGrace bounds the time for running RPCs after LameDuck. Default DefaultStopGrace.
	StopGrace time.Duration
}

// largestRequest returns gRPC's default bound or, with the expander, a bound for about 8,000 pods, which CA sends with
// each group that fits them. CA uses its next expander if the request is larger.
func (o ServeOptions) largestRequest() int {
	if o.Expander {
		return 16 << 20
	}
	return 4 << 20
}

// Serve answers CA on the listener until ctx ends, closes the listener, and then stops within LameDuck and StopGrace.
// During this time it keeps the view up to date and answers the gRPC health protocol: SERVING only while the server is
// Ready. It returns nil when ctx ended it.
func Serve(ctx context.Context, listener net.Listener, s *Server, o ServeOptions) error {
	o.Credentials = cmp.Or(o.Credentials, insecure.NewCredentials())
	o.StopGrace = cmp.Or(o.StopGrace, DefaultStopGrace)
	chain := append([]grpc.UnaryServerInterceptor{}, o.Interceptors...)
	var options []grpc.ServerOption
	if o.Calls != nil {
		options = append(options, grpc.StatsHandler(o.Calls))
	}
	server := grpc.NewServer(append(options,
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2(protocodec.Name)}), grpc.Creds(o.Credentials),
		grpc.InTapHandle((&admission{}).admit), grpc.MaxRecvMsgSize(o.largestRequest()),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.MaxHeaderListSize(maxHeaderBytes), grpc.MaxConcurrentStreams(maxStreams),
		grpc.ChainUnaryInterceptor(append(chain, logging(s.log), recovery(s.log))...),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: maxConnectionAge, MaxConnectionAgeGrace: time.Minute, Time: pingAfter, Timeout: pingTimeout,
		}))...,
	)
	protos.RegisterCloudProviderServer(server, s)
	if o.Expander {
		server.RegisterService(&bestOptions, expander{server: s})
	}
	status := health.NewServer()
	healthpb.RegisterHealthServer(server, status)
	setHealth(status, s.Ready() == nil)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { s.KeepWarm(ctx, func() { setHealth(status, s.Ready() == nil) }) })
	background.Go(func() {
		<-ctx.Done()
		status.Shutdown() // load balancers stop sending requests first
		wait.For(context.WithoutCancel(ctx), o.LameDuck)
		stop(server, o.StopGrace)
	})
	s.log.Info("serving Cluster Autoscaler", "address", listener.Addr().String())
	err := server.Serve(connlimit.Listen(listener, maxConnections))
	cancel()
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) { // ErrServerStopped: ctx ended before Serve started
		return fmt.Errorf("serve grpc: %w", err)
	}
	return nil
}

// setHealth sets the health of the whole server and of CA's service.
func setHealth(status *health.Server, ready bool) {
	verdict := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		verdict = healthpb.HealthCheckResponse_SERVING
	}
	status.SetServingStatus("", verdict)
	status.SetServingStatus(protos.CloudProvider_ServiceDesc.ServiceName, verdict)
}

// stop waits for running RPCs for at most grace.
func stop(server *grpc.Server, grace time.Duration) {
	timer := time.AfterFunc(grace, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
}
