package parts

import (
	"context"
	"errors"
	"sync/atomic"

	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
)

// ObserveServer shows a gRPC server and has its RPCs measured. The server is alive while its loop comes round.
func (o *Observer) ObserveServer(s *grpcserver.Server, serve *grpcserver.ServeOptions) {
	o.Alive("refresh", func(context.Context) error { return s.Alive() })
	o.ReadyWhen("node groups", func(context.Context) error { return s.Ready() })
	m := grpcserver.NewMetrics(s)
	serve.Interceptors = append(serve.Interceptors, m.Interceptor())
	o.Registry.MustRegister(m)
	if o.traces != nil {
		serve.Calls = mutationSpans(o.traces)
	}
}

// health is the part of the Temporal client that readiness asks.
type health interface {
	CheckHealth(ctx context.Context, request *client.CheckHealthRequest) (*client.CheckHealthResponse, error)
}

// ObserveWorker adds the readiness checks of a worker: it is ready once polls has been called, while Temporal answers.
// Until then readiness names the last reason that waits was called with.
func (o *Observer) ObserveWorker(temporal health) (polls func(), waits func(why error)) {
	var reason atomic.Pointer[error]
	waits = func(why error) { reason.Store(&why) }
	waits(errors.New("not started yet"))
	o.ReadyWhen("worker", func(context.Context) error { return *reason.Load() })
	o.ReadyWhenAsked("Temporal", func(ctx context.Context) error {
		_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	})
	return func() { waits(nil) }, waits
}
