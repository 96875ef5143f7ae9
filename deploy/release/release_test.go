package release_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/require"
)

// version is the version that this test releases.
const version = "0.1.0-check.1"

var platforms = []string{"linux_amd64", "linux_arm64", "darwin_arm64"}

// release is a release that was built in a copy of the repository, with a registry and a signing key of the test.
type release struct {
	folder, dist, registry, key, public, otherPublic string
	env                                              []string
}

// `make release` builds and signs the image, the charts, the SBOMs and the binaries without GitHub. A second run
// produces the same bytes.
func TestReleaseIsSignedAndReproducible(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	r := &release{registry: server.Listener.Addr().String()}
	r.makeKeys(t)
	r.env = append(r.env, "COSIGN_KEY="+r.key, "VERSION="+version, "IMAGE="+r.image(), "CHARTS="+r.registry+"/charts",
		"PLAIN_HTTP=1", "KO_DEFAULTBASEIMAGE="+pushBase(t, r.registry), "DOCKER_CONFIG="+t.TempDir(),
		"HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	r.folder = r.copyOf(t)
	r.dist = filepath.Join(r.folder, ".run/dist")
	r.run(t, r.folder, "deploy/release/publish.sh")
	r.archive(t, r.folder)

	t.Run("images", r.images)
	t.Run("tarball", r.tarball)
	t.Run("charts", r.charts)
	t.Run("archives", r.archives)
	t.Run("krew", r.krew)
	t.Run("reproducible", r.reproducible)
}

func (r *release) image() string { return r.registry + "/liqo-autoscaler" }

// archiveOf returns the file name of the archive for a platform such as linux_amd64.
func (r *release) archiveOf(platform string) string {
	return filepath.Join(r.dist, "liqo-autoscaler_"+version+"_"+platform+".tar.gz")
}

// makeKeys creates a signing key, and a second key with which nothing is signed.
func (r *release) makeKeys(t *testing.T) {
	own, other := t.TempDir(), t.TempDir()
	r.env = []string{"COSIGN_PASSWORD="}
	for _, folder := range []string{own, other} {
		r.run(t, folder, tool(t, "cosign"), "generate-key-pair")
	}
	r.key, r.public, r.otherPublic = own+"/cosign.key", own+"/cosign.pub", other+"/cosign.pub"
}

// copyOf copies the files of the repository into a new repository: the files that git tracks, and the untracked files
// that git does not ignore. The new repository has one commit, which has the tag of the release.
func (r *release) copyOf(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	r.run(t, "../..", "bash", "-euo", "pipefail", "-c", `git ls-files -co --exclude-standard -z -- . ':!bin' |
		tar --null --ignore-failed-read --warning=no-failed-read -T- -c | tar -x -C "$1"; ln -s "$PWD/bin" "$1/bin"
		cd "$1"; git init -q; echo /bin >>.git/info/exclude; git add -A
		git remote add origin https://github.com/liqo-autoscaler/liqo-autoscaler
		export GIT_AUTHOR_DATE=2026-01-02T03:04:05Z GIT_COMMITTER_DATE=2026-01-02T03:04:05Z
		git -c user.name=x -c user.email=x@example.com commit -qm x; git tag "v$VERSION"`, "-", folder)
	return folder
}

// archive runs goreleaser in the folder, without the steps that need GitHub.
func (r *release) archive(t *testing.T, folder string) {
	t.Helper()
	r.run(t, folder, "bin/goreleaser", "release", "--skip=publish", "--clean", "--parallelism", "1",
		"--config", "deploy/release/goreleaser.yaml")
}

// archives checks the file of checksums, its signature, and the binary for this machine.
func (r *release) archives(t *testing.T) {
	sums := filepath.Join(r.dist, "checksums.txt")
	names := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(read(t, sums)), "\n") {
		sum, name, _ := strings.Cut(line, "  ")
		names[name] = true
		path := filepath.Join(r.dist, name)
		if strings.HasSuffix(name, ".spdx.json") {
			path = filepath.Join(r.folder, ".run/sbom", name)
		}
		require.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, path)))), name)
	}
	for _, platform := range platforms {
		require.Contains(t, names, filepath.Base(r.archiveOf(platform)))
	}
	for _, arch := range architectures {
		require.Contains(t, names, "liqo-autoscaler-linux-"+arch+".spdx.json")
	}
	verify := func(public, file string) error {
		return r.try(r.folder, "bin/cosign", "verify-blob", "--key", public, "--insecure-ignore-tlog",
			"--bundle", sums+".sigstore.json", file)
	}
	require.NoError(t, verify(r.public, sums))
	require.Error(t, verify(r.otherPublic, sums), "another key")
	changed := filepath.Join(t.TempDir(), "checksums.txt")
	require.NoError(t, os.WriteFile(changed, []byte(read(t, sums)+"\n"), 0o600))
	require.Error(t, verify(r.public, changed), "another file")

	folder := t.TempDir()
	r.run(t, folder, "tar", "-xf", r.archiveOf(runtime.GOOS+"_"+runtime.GOARCH))
	require.Equal(t, "liqo-autoscaler version "+version+"\n", r.run(t, folder, "./liqo-autoscaler", "--version"))
	require.FileExists(t, filepath.Join(folder, "LICENSE"))
}

// krew checks that the manifest for krew contains each archive with its checksum. It runs the binary for this machine
// through a link with the same name as krew's link. TestKrewManifest in the folder deploy checks the other fields.
func (r *release) krew(t *testing.T) {
	manifest := read(t, filepath.Join(r.dist, "liqo-autoscaler.yaml"))
	require.Contains(t, manifest, "\n  version: v"+version+"\n")
	for _, platform := range platforms {
		archive := r.archiveOf(platform)
		require.Contains(t, manifest, "\n    uri: https://github.com/liqo-autoscaler/liqo-autoscaler/releases/download/v"+
			version+"/"+filepath.Base(archive)+"\n    sha256: "+digest(t, archive)+"\n")
	}
	require.Equal(t, len(platforms), strings.Count(manifest, "sha256: "))

	folder := t.TempDir()
	r.run(t, folder, "tar", "-xf", r.archiveOf(runtime.GOOS+"_"+runtime.GOARCH))
	require.NoError(t, os.Symlink("liqo-autoscaler", filepath.Join(folder, "kubectl-liqo_autoscaler")))
	require.Contains(t, r.run(t, folder, "./kubectl-liqo_autoscaler", "status", "--help"),
		"Usage:\n  kubectl liqo-autoscaler status [flags]\n")
}

// reproducible builds the archives again in another folder, and compares them.
func (r *release) reproducible(t *testing.T) {
	again := r.copyOf(t)
	require.NoError(t, os.CopyFS(filepath.Join(again, ".run/sbom"), os.DirFS(filepath.Join(r.folder, ".run/sbom"))))
	r.archive(t, again)
	for _, b := range r.binaries(t) {
		first, second := digest(t, filepath.Join(r.folder, b)), digest(t, filepath.Join(again, b))
		t.Logf("%s %s", first, b)
		require.Equal(t, first, second, b)
	}
	sums := ".run/dist/checksums.txt"
	require.Equal(t, read(t, filepath.Join(r.folder, sums)), read(t, filepath.Join(again, sums)), "archives and SBOMs")
}

// binaries returns the paths of the binaries, relative to the copy of the repository.
func (r *release) binaries(t *testing.T) (all []string) {
	t.Helper()
	var artifacts []struct{ Path, Type string }
	require.NoError(t, json.Unmarshal([]byte(read(t, filepath.Join(r.dist, "artifacts.json"))), &artifacts))
	for _, a := range artifacts {
		if a.Type == "Binary" {
			all = append(all, a.Path)
		}
	}
	require.Len(t, all, 3*len(platforms), "three programs")
	return all
}

func (r *release) run(t *testing.T, folder, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), r.env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	require.NoError(t, cmd.Run(), "%s %v\n%s%s", name, args, &out, &errOut)
	return out.String()
}

// try runs a command that may fail.
func (r *release) try(folder, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), r.env...)
	return cmd.Run()
}

// tool returns the path of a tool that make has installed.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../bin/" + name)
	require.NoError(t, err)
	require.FileExists(t, path, "run make release-check")
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func digest(t *testing.T, path string) string {
	t.Helper()
	return fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, path))))
}
