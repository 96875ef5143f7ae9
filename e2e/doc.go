// Package e2e is the end-to-end suites: our real processes between a real Temporal server, the real Cluster Autoscaler loop
// (package ca) and real Kubernetes and Liqo (package lab).
//
//	consumer API server <── Cluster Autoscaler ──> ca.Proxy ──> grpcserver ──> Temporal <── worker ──> consumer, providers
//
// Each suite is one top-level test: TestFirstNode. Steps are timed: lines "STEP <suite>/<step> <seconds>" on standard output. All
// logs, the recorded calls and, after a failure, the lab's logs stay in the folder liqo-autoscaler-e2e of os.TempDir.
package e2e
