// Package upgrade is the suite on two builds of the worker beside each other: the previous commit's and this one's, on
// a Temporal dev server and simulated Liqo, under load, with scale-ins that are stuck on a dead provider throughout. It
// has tests only; `make e2e SUITE=upgrade` runs it.
//
//	CA's calls ──> grpcserver ──> Temporal <── worker (old), worker (new)
//
// One part runs workers without versioning, the other one with Worker Deployment Versioning. No workflow task may fail,
// no instance may be lost, and nothing is left at the end.
//
// The old build is that of UPGRADE_FROM, by default HEAD~1. Where there is none to build, and where the recorded
// histories have been made anew since (so neither can continue the other's workflows), it is this build again under
// another version.
package upgrade
