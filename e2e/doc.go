// Package e2e holds the end-to-end suites. They run our real processes with a real Temporal server, the real Cluster
// Autoscaler loop (package ca), and real Kubernetes and Liqo (package lab).
//
//	consumer API server <── Cluster Autoscaler ──> ca.Proxy ──> grpcserver ──> Temporal
//	consumer and provider API servers <── worker ──> Temporal
//
// The suites run with the permissions that deploy grants. The worker has the chart's ServiceAccount in the consumer
// cluster, and the account of deploy/provider in each provider cluster. The gRPC server has no account. A suite fails
// if an API server has refused a request of these accounts. All connections from CA to the gRPC server use mutual
// TLS, with an authority and certificates that each run creates. CA reads the certificates from the file that
// `liqo-autoscaler config cloud-config` prints.
//
// Each suite is one top-level test with its own lab and its own processes. It consists of parts. At the start and at
// the end of each part, the clusters contain no object of ours. The suites are:
//
//	TestFirstNode       a pod gets a Ready node, removed later; a worker killed, a peering cancelled, access control
//	TestFirstNodePerProvider  the same with a node group for each provider, derived from the market
//	TestFailover        the first provider refuses, hangs or dies at each stage; both providers hang
//	TestWatch           existing nodes: deleted, lost, not ready
//	TestForeignPeering  foreign peerings and slices next to ours
//	TestRatio           durations of scale-outs next to durations by hand; prints BENCH lines
//	TestCrash           the worker killed before and after each write to an API server; the test acts as CA
//	TestDecides         the first provider's agent grants and denies slices
//	TestTwoAutoscalers  together with a Cluster Autoscaler of a cloud that does not accept our providerIDs
//	TestPods            containers on a real kubelet of a provider, in a room (command lab/room)
//	TestProduction      TestFirstNode on Temporal as in production (package temporal), with two of each of our processes
//
// Three packages in folders of this package need no clusters. Package production contains the other half of the suite
// "production". Package bundled contains the suite for the pod in which Temporal runs. Package upgrade contains the
// suite in which two builds of the worker run together.
//
// A suite prints the duration of each step as a line "STEP <suite>/<step> <seconds>" on standard output. A line
// "FAILOVER" contains the log's entry about a failed attempt. The suite leaves its logs and the recorded calls in the
// folder liqo-autoscaler-e2e of os.TempDir, and after a failure also the lab's logs.
package e2e
