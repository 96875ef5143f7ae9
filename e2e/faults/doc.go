// Package faults is the suite for faults outside the workflows: a restored backup of Temporal's database, a lost
// visibility store, a Temporal that hangs or limits requests, leading workers that die, freeze or lead at the same
// time, and workers of another cluster. It runs one gRPC server, two workers and a Temporal dev server as processes,
// with simulated Liqo.
// The package contains only tests, which `make e2e SUITE=faults` runs.
//
//	CA's calls ──> grpcserver ──> Temporal <── worker-0 (leads), worker-1
//
// In all parts, a Node that is Ready and healthy is not removed, and an instance id is never used for a second Node.
// At the end of each part, the target size and the numbers of running instances, of slices and of Nodes are equal to
// the number of nodes that Cluster Autoscaler wants.
package faults
