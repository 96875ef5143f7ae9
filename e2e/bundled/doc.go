// Package bundled is the suite of the Temporal that the chart brings, temporal.bundled: the official server on a SQLite
// file, the worker and the gRPC server, each with the environment and the command line of the rendered StatefulSet, as
// processes, on simulated Liqo. It has tests only; `make e2e SUITE=bundled` runs it.
//
// Three things differ from the pod: the folders, the ports (no other process can use the pod's), and the flags of the
// worker that select simulated Liqo. The test plays the kubelet: it restarts processes that have ended, and reads the
// readiness.
//
// The figures in docs/temporal.md are from the lines "MEASURED <what> <value> <unit>" on standard output.
package bundled
