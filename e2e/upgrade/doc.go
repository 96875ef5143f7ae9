// Package upgrade is the suite in which two builds of the worker run together: the build of the previous commit and
// the build of this commit. They run under load, with a Temporal dev server and simulated Liqo. During the whole
// suite, some scale-ins cannot end because their provider does not answer. The package contains only tests, which
// `make e2e SUITE=upgrade` runs.
//
//	CA's calls ──> grpcserver ──> Temporal <── worker (old), worker (new)
//
// One part runs workers without versioning, and the other part runs workers with Worker Deployment Versioning. No
// workflow task may fail, no instance may be lost, and no object may be left at the end.
//
// The old build is the build of the commit UPGRADE_FROM, by default HEAD~1. In two cases the suite uses the build of
// this commit, with another version, instead of the old build. The first case is that the old commit cannot be built.
// In the second case, the recorded histories have been recorded again since that commit, and neither build could
// continue the workflows of the other.
package upgrade
