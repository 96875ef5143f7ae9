// Package e2e holds the end-to-end suites: our real processes between a real Temporal server, the real Cluster
// Autoscaler loop (package ca) and real Kubernetes and Liqo (package lab).
//
//	consumer API server <── Cluster Autoscaler ──> ca.Proxy ──> grpcserver ──> Temporal
//	consumer and provider API servers <── worker ──> Temporal
//
// The suites run with the permissions of deploy: the worker has the chart's ServiceAccount in the consumer cluster and
// the account of deploy/provider in each provider's, the gRPC server has none, and at the end no API server may have
// refused them anything. All connections from CA to the gRPC server use mutual TLS, with the authority and certificates
// of this one run; CA reads them from the file that `liqo-autoscaler config cloud-config` prints.
//
// Each suite is one top-level test with its own lab and stack. Its parts begin and end without any object of ours in
// the clusters:
//
//	TestFirstNode       pending pod to Ready node and back; a worker killed, a peering cancelled; access control
//	TestFirstNodePerProvider  the same with a node group for each provider, derived from the market
//	TestFailover        the first provider refuses, hangs or dies at each stage; both do
//	TestWatch           existing nodes: deleted, lost, not ready
//	TestForeignPeering  foreign peerings and slices next to ours
//	TestRatio           durations of scale-outs next to durations by hand; prints BENCH lines
//	TestCrash           the worker killed before and after each write to an API server; the test plays CA
//	TestDecides         the first provider's agent grants and denies slices
//	TestTwoAutoscalers  together with a Cluster Autoscaler of a cloud that does not accept our providerIDs
//	TestPods            containers on a real kubelet of a provider, in a room (command lab/room)
//	TestProduction      TestFirstNode on Temporal as in production (package temporal), with two of each of our processes
//
// The packages production, bundled and upgrade below need no clusters: they test the other half of the suite
// production, the pod with its own Temporal, and two builds of the worker.
//
// Steps are timed: lines "STEP <suite>/<step> <seconds>" on standard output; lines "FAILOVER" contain the log's entry
// about a failed attempt. All logs, the recorded calls and, after a failure, the lab's logs stay in the folder
// liqo-autoscaler-e2e of os.TempDir.
package e2e
