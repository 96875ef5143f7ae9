// Package e2e is the end-to-end suites: our real processes between a real Temporal server, the real Cluster Autoscaler
// loop (package ca) and real Kubernetes and Liqo (package lab).
//
//	consumer API server <── Cluster Autoscaler ──> ca.Proxy ──> grpcserver ──> Temporal
//	consumer and provider API servers <── worker ──> Temporal
//
// What deploy promises is what runs: the worker has the chart's ServiceAccount in the consumer cluster and the account
// of deploy/provider in each provider's, the gRPC server has none, and at the end no API server may have refused them
// anything. All connections from CA to the gRPC server are mutual TLS, with the authority and certificates of this one
// run; CA reads them from the file that `liqo-autoscaler config cloud-config` prints.
//
// Each suite is one top-level test with a lab and a stack of its own, whose parts begin and end with no object
// owned by us in the clusters:
//
//	TestFirstNode       pending pod to Ready node and back; a worker killed, a peering cancelled; access control
//	TestFirstNodePerProvider  the same with a node group for each provider, derived from the market
//	TestFailover        the first provider refuses, hangs or dies at each stage; both do
//	TestWatch           nodes that are there: deleted, lost, not ready
//	TestForeignPeering  peerings and slices of others next to ours
//	TestRatio           what a scale-out takes beside what people do by hand; prints BENCH lines
//	TestCrash           the worker killed before and after each write to an API server; the test plays CA
//	TestDecides         the first provider's agent grants and denies slices
//	TestTwoAutoscalers  together with a Cluster Autoscaler of a cloud that does not accept our providerIDs
//	TestPods            containers on a real kubelet of a provider, in a room (command lab/room)
//	TestProduction      TestFirstNode on Temporal as people run it (package temporal), with two of each of our processes
//
// Packages production, bundled and upgrade below are without clusters: the other half of the suite production, the pod
// that has a Temporal of its own, and two builds of the worker.
//
// Steps are timed: lines "STEP <suite>/<step> <seconds>" on standard output; lines "FAILOVER" are what the log says of
// a failed attempt. All logs, the recorded calls and, after a failure, the lab's logs stay in the folder
// liqo-autoscaler-e2e of os.TempDir.
package e2e
