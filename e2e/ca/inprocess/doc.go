// Package inprocess runs Cluster Autoscaler's own loop (1.33.0) and the real gRPC server in one process, in seconds
// and without a lab. It tests how CA reacts to our answers: `make e2e SUITE=ca`.
//
//	fake API server <── core.Autoscaler ──> ca.Proxy ──> grpcserver.Server ──> fleet.Ledger
//	fake API server <── worker of a world ──────────────────────────────────> fleet.Ledger
//
// A world (world_test.go) consists of a cluster with one machine that is full, the providers' offers, and node groups
// as a user writes them. CA has the flags of deploy/ca/values.yaml unless a test sets other flags. The ledgers are
// real and execute their own commands. The worker (worker_test.go) replaces Temporal and Liqo. It chooses a provider
// with choice.Choose, creates the Node that Liqo would create, publishes the market, and assesses the providers each
// minute. Each loop advances the simulated time, so that an hour takes a second. Only for the backoff of a group, CA
// uses the wall clock.
//
// Each file has one subject: growing, deriving, failing, pricing, balancing, draining, interrupting, requesting. The
// name of a test TestS<n> refers to scenario n of docs/cluster-autoscaler.md. KLOG=4 prints CA's log, and LOG=1 prints
// the server's log.
package inprocess
