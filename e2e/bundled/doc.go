// Package bundled is the suite for the value temporal.bundled, with which the chart installs Temporal. It runs three
// programs as processes: the official Temporal server on a SQLite file, the worker and the gRPC server. Liqo is
// simulated. Each process has the environment and the command line of the rendered StatefulSet. The package contains
// only tests, which `make e2e SUITE=bundled` runs.
//
// Three things differ from the pod: the folders, the ports (because other processes of this machine may use the pod's
// ports), and the flags with which the worker uses the simulated Liqo. The test does the work of the kubelet: it
// restarts processes that have ended, and runs the readiness checks.
//
// The figures in docs/temporal.md are from the lines "MEASURED <what> <value> <unit>" on standard output.
package bundled
