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

// These constants are the times of connections and of a stop.
const (
	// maxConnectionAge is the time after which a client must connect again. At a new connection the server checks the
	// client certificate again, and the client may reach another replica.
	maxConnectionAge = time.Hour
	// pingAfter and pingTimeout detect connections whose client has disappeared without closing them.
	pingAfter   = time.Minute
	pingTimeout = 10 * time.Second
	// DefaultStopGrace is the time for which a stopping server waits for running RPCs. It is longer than the time for
	// which CA waits for an RPC.
	DefaultStopGrace = 6 * time.Second
)

// ServeOptions configures Serve. The zero value serves plaintext.
type ServeOptions struct {
	// Credentials secure the transport, see TLS; nil means plaintext. CA uses plaintext when its cloud-config
	// contains no certificate.
	Credentials credentials.TransportCredentials
	// Interceptors run around every RPC, and the first interceptor is the outermost. Metrics use an interceptor.
	Interceptors []grpc.UnaryServerInterceptor
	// Calls, if not nil, observes the start and the end of every RPC, before and after all interceptors. Traces use
	// it.
	Calls stats.Handler
	// LameDuck is the time after the end of ctx during which the server still answers new RPCs although its health is
	// NOT_SERVING. It should be as long as a Service needs to remove the server's endpoint. Otherwise calls of CA may
	// fail. CA does not retry a failed call, and loses its scale-down timers.
	LameDuck time.Duration
	// Expander reports whether the server also serves CA's --expander=grpc. CA's client of the expander has no
	// certificate. With TLS, the expander therefore needs TLSFiles.Anonymous.
	Expander bool
	// StopGrace bounds the time for which the server waits for running RPCs after LameDuck; default DefaultStopGrace.
	StopGrace time.Duration
}

// largestRequest returns the largest size of a request in bytes. It is gRPC's default or, with the expander, enough
// for about 8,000 pods. A request contains a pod once for each group that fits the pod. If the request is larger, CA
// uses its next expander.
func (o ServeOptions) largestRequest() int {
	if o.Expander {
		return 16 << 20
	}
	return 4 << 20
}

// Serve answers CA on the listener until ctx ends. Until then it keeps the view up to date, and the server's health
// (gRPC health protocol) is SERVING only while the server is Ready. When ctx has ended, the health is NOT_SERVING,
// and the server still answers new RPCs for LameDuck. Then Serve closes the listener, and waits for running RPCs for
// at most StopGrace. Serve returns nil when it ends because of ctx.
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
		status.Shutdown() // load balancers stop sending requests before the server stops
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

// stop closes the listener, and waits for running RPCs for at most the time grace.
func stop(server *grpc.Server, grace time.Duration) {
	timer := time.AfterFunc(grace, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
}
