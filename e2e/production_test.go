package e2e_test

import (
	"context"
	"testing"
)

// patient allows a provider to take longer than Temporal and its database are away, on a slow machine too.
const patient = `  budgets: {peer: 4m}
`

// TestProduction is the half of the suite production that needs real Liqo: the story of the first node on Temporal as
// it runs in production, with two of each of our processes. While an instance waits for a provider, one of each dies. A
// worker and a gRPC server stay away until the node is gone again; Temporal and its database until a call of CA has
// failed.
func TestProduction(t *testing.T) {
	firstNode(t, "production-liqo", groups+patient, []part{
		{"WorkerKilledWhilePeering", killedWhilePeering(func(_ context.Context, r *run) {
			r.s.worker.Kill()
			r.t.Cleanup(func() { r.s.worker = r.s.startWorker("worker") })
		})},
		{"ServerKilledWhilePeering", killedWhilePeering(func(_ context.Context, r *run) {
			r.unanswered = true // calls that were pending may fail
			r.s.server.Kill()
			r.t.Cleanup(func() { r.s.server = r.s.startServer(r.s.t.Context(), "grpcserver", 0) })
		})},
		{"TemporalKilledWhilePeering", killedWhilePeering(func(ctx context.Context, r *run) {
			r.s.production.Kill()
			r.missed(ctx)
			r.s.production.Start(r.t)
		})},
		{"PostgreSQLKilledWhilePeering", killedWhilePeering(func(ctx context.Context, r *run) {
			r.s.production.Postgres.Kill()
			r.missed(ctx)
			r.s.production.Postgres.Start(r.t)
			r.s.production.Start(r.t)
		})},
	}, withProduction)
}
