package upgrade

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// mode reports whether workers are versioned.
type mode bool

// TestUpgrade is the suite; both parts run concurrently, each on its own Temporal.
func TestUpgrade(t *testing.T) {
	dir := filepath.Join(os.TempDir(), "liqo-autoscaler-e2e", "upgrade")
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.MkdirAll(dir, 0o755))
	b := build(t, dir)
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		plain(newStack(t, filepath.Join(dir, "plain"), b))
	})
	t.Run("versioned", func(t *testing.T) {
		t.Parallel()
		if !b.versions(t) {
			t.Log("the old build knows no versioning: with it, this build under another version stands in for it")
			b.older = same(t, dir)
		}
		pinned(newStack(t, filepath.Join(dir, "versioned"), b))
	})
}

// plain replaces the workers in the same way as a Deployment replaces its Pods. Both builds run together for a while,
// and then each build runs alone.
func plain(s *stack) {
	s.work(oldBuild, s.builds.older)
	s.begin()
	s.wave("the old build", nil)
	s.wave("the new one joins it", func() { s.work(newBuild, s.builds.newer) })
	s.wave("both", nil)
	s.wave("the old one leaves", func() { s.leave(oldBuild) })
	s.wave("the new one alone", nil)
	s.wave("back: the old one joins it", func() { s.work(oldBuild, s.builds.older) })
	s.wave("back: the new one leaves", func() { s.leave(newBuild) })
	s.wave("the old build alone again", nil)
	s.end(false)
}

// pinned also replaces the workers. Versioning is enabled during the run. In one wave, the workers of a version die
// while workflows are pinned to it.
func pinned(s *stack) {
	version := func(build string) []string { return []string{"--deployment-name", deployment, "--build-id", build} }
	s.work("plain", s.builds.older)
	s.begin()
	s.wave("versioning is turned on", func() {
		s.work(oldBuild, s.builds.older, version(oldBuild)...)
		s.current(oldBuild)
		s.leave("plain")
	})
	s.wave("the new build becomes current", func() {
		s.work(newBuild, s.builds.newer, version(newBuild)...)
		s.current(newBuild)
	})
	s.leave(oldBuild) // no workflow is pinned to it
	s.wave("the new build alone", nil)
	s.wave("back: the old build becomes current, and the new build dies immediately", func() {
		s.work(oldBuild, s.builds.older, version(oldBuild)...)
		s.current(oldBuild)
		s.kill(newBuild)
	})
	s.wave("the old build alone again", nil)
	s.end(true)
}
