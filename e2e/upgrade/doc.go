// Package upgrade is the suite of two builds of the worker that run together: the build of the previous commit and the
// build of this commit. They run on a Temporal dev server and simulated Liqo, under load. During the whole suite, some
// scale-ins are stuck on a dead provider. The package contains only tests, which `make e2e SUITE=upgrade` runs.
//
//	CA's calls ──> grpcserver ──> Temporal <── worker (old), worker (new)
//
// One part runs workers without versioning, and the other part runs workers with Worker Deployment Versioning. No
// workflow task may fail, no instance may be lost, and at the end no object is left.
//
// The old build is the build of the commit UPGRADE_FROM, by default HEAD~1. In two cases this build, under another
// version, replaces the old build: when the old commit cannot be built, and when the recorded histories have been
// recorded again since that commit, because then neither build can continue the workflows of the other.
package upgrade
