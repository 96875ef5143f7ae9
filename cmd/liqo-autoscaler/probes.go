package main

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/agent"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/server"
	"github.com/liqo-autoscaler/liqo-autoscaler/grpcserver"
	"github.com/liqo-autoscaler/liqo-autoscaler/worker/metrics"
)

// observeServer shows a gRPC server and has its RPCs measured: alive while its loop comes round, ready with a fresh
// view.
func (o *observer) observeServer(s *grpcserver.Server, serve *grpcserver.ServeOptions) {
	o.alive("refresh", func(context.Context) error { return s.Alive() })
	o.readyWhen("node groups", func(context.Context) error {
		if !s.Fresh() {
			return errors.New("not all have been read within the last minute, see the log")
		}
		return nil
	})
	m := grpcserver.NewMetrics(s)
	serve.Interceptors = append(serve.Interceptors, m.Interceptor())
	o.registry.MustRegister(m)
	if o.traces != nil {
		serve.Calls = mutationSpans(o.traces)
	}
}

// health is the part of the Temporal client that readiness asks.
type health interface {
	CheckHealth(ctx context.Context, request *client.CheckHealthRequest) (*client.CheckHealthResponse, error)
}

// observeWorker shows a worker: ready once polls has been called, while Temporal answers.
func (o *observer) observeWorker(temporal health) (polls func()) {
	var polling atomic.Bool
	o.readyWhen("worker", func(context.Context) error {
		if !polling.Load() {
			return errors.New("not started yet")
		}
		return nil
	})
	o.readyWhen("Temporal", func(ctx context.Context) error {
		_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err
	})
	return func() { polling.Store(true) }
}

// observeOffers shows a discovery server: ready while its store answers.
func (o *observer) observeOffers(s *server.Server) { o.readyWhen("offers", s.Ready) }

// observeAgent shows an agent: ready once it can measure, while what it measures is advertised.
func (o *observer) observeAgent(a *agent.Agent) {
	o.readyWhen("cluster", func(context.Context) error { return a.Ready() })
	o.readyWhen("offers", func(context.Context) error { return a.Advertised() })
}

// observeCertificate tells when the certificate ends that is in the file now; 0, long ago, when it cannot be read.
func (o *observer) observeCertificate(file string) {
	o.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: metrics.Namespace, Name: "tls_certificate_expiry_timestamp_seconds",
		Help: "When the server's certificate expires; 0 when its file cannot be read.",
	}, func() float64 {
		chain, err := os.ReadFile(file)
		if err != nil {
			return 0
		}
		block, _ := pem.Decode(chain)
		if block == nil {
			return 0
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return 0
		}
		return float64(cert.NotAfter.Unix())
	}))
}
