// Package bundled is the suite of the Temporal that the chart brings, temporal.bundled: the official server on a SQLite
// file, the worker and the gRPC server, each with the environment and the command line of the rendered StatefulSet, as
// processes, on simulated Liqo. It has tests only; `make e2e SUITE=bundled` runs it.
//
// Other than in the pod are the folders, the ports, which the pod has to itself, and the flags of the worker that say
// what it works on. The test plays the kubelet: it starts what has ended, and reads the readiness.
//
// Lines "MEASURED <what> <value> <unit>" on standard output are what docs/temporal.md has its figures from.
package bundled
