// Package upgrade is the suite on two builds of the worker that run together: the previous commit's and this one's, on
// a Temporal dev server and simulated Liqo, under load, with scale-ins that are stuck on a dead provider throughout. It
// has tests only; `make e2e SUITE=upgrade` runs it.
//
//	CA's calls ──> grpcserver ──> Temporal <── worker (old), worker (new)
//
// One part runs workers without versioning, the other one with Worker Deployment Versioning. No workflow task may fail,
// no instance may be lost, and nothing is left at the end.
//
// The old build is the build of UPGRADE_FROM, by default HEAD~1. If it cannot be built, or if the recorded histories
// have been made again since (so neither build can continue the other's workflows), the old build is this build under
// another version.
package upgrade
