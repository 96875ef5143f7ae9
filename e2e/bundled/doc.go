// Package bundled is the suite of the Temporal that the chart installs with temporal.bundled. It runs the official
// server on a SQLite file, the worker and the gRPC server as processes, on simulated Liqo. Each process has the
// environment and the command line of the rendered StatefulSet. The package contains only tests, which `make e2e
// SUITE=bundled` runs.
//
// Three things differ from the pod: the folders, the ports (because on this machine other processes may use the pod's),
// and the flags by which the worker uses simulated Liqo. The test does the kubelet's work: it restarts processes that
// have ended, and runs the readiness checks.
//
// The figures in docs/temporal.md are from the lines "MEASURED <what> <value> <unit>" on standard output.
package bundled
