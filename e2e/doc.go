// Package e2e holds the end-to-end suites: our real processes between a real Temporal server, the real Cluster
// Autoscaler loop (package ca) and real Kubernetes and Liqo (package lab).
//
//	consumer API server <── Cluster Autoscaler ──> ca.Proxy ──> grpcserver ──> Temporal
//	consumer and provider API servers <── worker ──> Temporal
//
// The suites run with the permissions that deploy grants. The worker has the chart's ServiceAccount in the consumer
// cluster, and the account of deploy/provider in each provider cluster. The gRPC server has no account. At the end, no
// API server may have refused them a request. All connections from CA to the gRPC server use mutual TLS, with an
// authority and certificates that each run creates. CA reads them from the file that `liqo-autoscaler config
// cloud-config` prints.
//
// Each suite is one top-level test with its own lab and stack. It consists of parts. At the start and at the end of
// each part, the clusters contain no object of ours:
//
//	TestFirstNode       pending pod to Ready node and back; a worker killed, a peering cancelled; access control
//	TestFirstNodePerProvider  the same with a node group for each provider, derived from the market
//	TestFailover        the first provider refuses, hangs or dies at each stage; both do
//	TestWatch           existing nodes: deleted, lost, not ready
//	TestForeignPeering  foreign peerings and slices next to ours
//	TestRatio           durations of scale-outs next to durations by hand; prints BENCH lines
//	TestCrash           the worker killed before and after each write to an API server; the test acts as CA
//	TestDecides         the first provider's agent grants and denies slices
//	TestTwoAutoscalers  together with a Cluster Autoscaler of a cloud that does not accept our providerIDs
//	TestPods            containers on a real kubelet of a provider, in a room (command lab/room)
//	TestProduction      TestFirstNode on Temporal as in production (package temporal), with two of each of our processes
//
// The packages production, bundled and upgrade below need no clusters. They contain the other half of the suite
// "production", the suite of the pod with its own Temporal, and the suite of two builds of the worker.
//
// The duration of each step is a line "STEP <suite>/<step> <seconds>" on standard output. A line "FAILOVER" contains
// the log's entry about a failed attempt. All logs, the recorded calls and, after a failure, the lab's logs stay in the
// folder liqo-autoscaler-e2e of os.TempDir.
package e2e
