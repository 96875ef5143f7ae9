package e2e_test

import (
	"context"
	"testing"
)

// patient gives a provider more time than the outage of Temporal and its database takes, even on a slow machine.
const patient = `  budgets: {peer: 4m}
`

// TestProduction is the half of the suite "production" that needs real Liqo. It creates and removes a first node.
// Temporal runs as in production, with two workers and two gRPC servers. While an instance waits for a provider, one
// process of each kind dies. A worker and a gRPC server stay down until the node is gone again. Temporal and its
// database stay down until a call of CA has failed. The suite also stops the leader for a while.
func TestProduction(t *testing.T) {
	firstNode(t, "production-liqo", groups+patient, []part{
		{"LeaderFrozen", leaderFrozen},
		{"WorkerKilledWhilePeering", killedWhilePeering(func(_ context.Context, r *run) {
			r.s.worker.Kill()
			r.t.Cleanup(func() { r.s.worker = r.s.startWorker("worker") })
		})},
		{"ServerKilledWhilePeering", killedWhilePeering(func(_ context.Context, r *run) {
			r.unanswered = true // calls that were pending may have failed
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
