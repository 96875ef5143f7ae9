// Package inprocess runs Cluster Autoscaler's own loop (1.33.0) against the real gRPC server in one process, in seconds
// and without a lab: what CA does with our answers is tested here, `make e2e SUITE=ca`.
//
//	fake API server <── core.Autoscaler ──> ca.Proxy ──> grpcserver.Server ──> fleet.Ledger
//	fake API server <── worker of a world ──────────────────────────────────> fleet.Ledger
//
// A world (world_test.go) is a cluster with one full machine, the providers' offers and node groups as a user writes
// them. CA has the flags of deploy/ca/values.yaml unless a test says otherwise. The ledgers are the real ones and are
// driven by their own commands; what stands in for Temporal and Liqo is the worker (worker_test.go): it chooses a
// provider with fleet.Choose, makes the Node that Liqo would make, publishes the market, and compares each minute. Time
// passes with each loop, so that an hour takes a second; only whether a group is backed off CA judges by the wall clock
// when it buys.
//
// Each file has one subject: growing, deriving, failing, pricing, balancing, draining, interrupting, requesting. A test
// called TestS<n> is scenario n of docs/cluster-autoscaler.md. KLOG=4 prints CA's log, LOG=1 the server's log.
package inprocess
