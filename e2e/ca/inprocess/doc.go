// Package inprocess runs Cluster Autoscaler's own loop (1.33.0) against the real gRPC server in one process, in seconds
// and without a lab. It tests CA's reactions to our answers: `make e2e SUITE=ca`.
//
//	fake API server <── core.Autoscaler ──> ca.Proxy ──> grpcserver.Server ──> fleet.Ledger
//	fake API server <── worker of a world ──────────────────────────────────> fleet.Ledger
//
// A world (world_test.go) is a cluster with one full machine, the providers' offers and node groups as a user writes
// them. CA has the flags of deploy/ca/values.yaml unless a test sets different ones. The ledgers are the real ones
// and are driven by their own commands. The worker (worker_test.go) replaces Temporal and Liqo: it chooses a provider
// with choice.Choose, makes the Node that Liqo would make, publishes the market, and compares each minute. Time passes
// with each loop, so that an hour takes a second; only for the backoff of a group CA uses the wall clock when it buys.
//
// Each file has one subject: growing, deriving, failing, pricing, balancing, draining, interrupting, requesting. A test
// called TestS<n> is scenario n of docs/cluster-autoscaler.md. KLOG=4 prints CA's log, LOG=1 the server's log.
package inprocess
