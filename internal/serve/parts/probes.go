package parts

import (
	"context"
	"errors"
	"sync/atomic"

	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
)

// ObserveServer adds the health checks and the metrics of a gRPC server. The liveness check fails if the server's
// refresh loop hangs.
func (o *Monitor) ObserveServer(s *grpcserver.Server, serve *grpcserver.ServeOptions) {
	o.Alive("refresh", func(context.Context) error { return s.Alive() })
	o.ReadyWhen("node groups", func(context.Context) error { return s.Ready() })
	m := grpcserver.NewMetrics(s)
	serve.Interceptors = append(serve.Interceptors, m.Interceptor())
	o.Registry.MustRegister(m)
	if o.traces != nil {
		serve.Calls = mutationSpans(o.traces)
	}
}

// health is the part of the Temporal client that ObserveWorker uses.
type health interface {
	CheckHealth(ctx context.Context, request *client.CheckHealthRequest) (*client.CheckHealthResponse, error)
}

// ObserveWorker adds two readiness checks of a worker. The first check fails until the worker has called the function
// polls, which it does when it polls its task queues. Until then, the error of the check is the last error that the
// worker has passed to the function waits. The second check fails while Temporal does not respond.
func (o *Monitor) ObserveWorker(temporal health) (polls func(), waits func(why error)) {
	var reason atomic.Pointer[error]
	waits = func(why error) { reason.Store(&why) }
	waits(errors.New("not started yet"))
	o.ReadyWhen("worker", func(context.Context) error { return *reason.Load() })
	o.ReadyWhenRemote("Temporal", func(ctx context.Context) error {
		_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	})
	return func() { waits(nil) }, waits
}
