package release_test

import (
	"archive/tar"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

const (
	certificates = "etc/ssl/certs/ca-certificates.crt"
	binary       = "ko-app/liqo-autoscaler"
)

var architectures = []string{"amd64", "arm64"}

// pushBase pushes an image that replaces distroless' static image in this test. The image contains only certificates,
// and its user is root.
func pushBase(t *testing.T, host string) string {
	t.Helper()
	base := v1.ImageIndex(empty.Index)
	for _, arch := range architectures {
		image, err := crane.Image(map[string][]byte{certificates: []byte("\n")})
		require.NoError(t, err)
		config, err := image.ConfigFile()
		require.NoError(t, err)
		config.OS, config.Architecture = "linux", arch
		image, err = mutate.ConfigFile(image, config)
		require.NoError(t, err)
		base = mutate.AppendManifests(base, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: config.Platform()}})
	}
	ref := reference(t, host+"/base:latest")
	require.NoError(t, remote.WriteIndex(ref, base))
	return ref.String()
}

// images checks, for each architecture, the layout, the user, the entrypoint, the binary and the SBOM of the image.
// It also checks all signatures.
func (r *release) images(t *testing.T) {
	index, err := remote.Index(reference(t, r.image()+":"+version))
	require.NoError(t, err)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	r.signed(t, r.image()+":"+version)
	var found []string
	for _, m := range manifest.Manifests {
		arch := m.Platform.Architecture
		found = append(found, arch)
		image, err := index.Image(m.Digest)
		require.NoError(t, err)
		program := check(t, image, arch)
		r.signed(t, r.image()+"@"+m.Digest.String())
		r.sbom(t, arch, m.Digest, program)
		archived := filepath.Join(t.TempDir(), "liqo-autoscaler")
		r.run(t, filepath.Dir(archived), "tar", "-xf", r.archiveOf("linux_"+arch))
		require.True(t, read(t, archived) == string(program), "the image has another binary than the archive for %s", arch)
	}
	require.Equal(t, architectures, found)
}

// check checks one image and returns the image's binary.
func check(t *testing.T, image v1.Image, arch string) []byte {
	t.Helper()
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, "linux/"+arch, config.OS+"/"+config.Architecture)
	require.Equal(t, "65532:65532", config.Config.User)
	require.Equal(t, []string{"/" + binary}, config.Config.Entrypoint)
	require.Empty(t, config.Config.Cmd)
	files := map[string][]byte{}
	extracted := mutate.Extract(image)
	defer extracted.Close()
	for archive := tar.NewReader(extracted); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if header.Typeflag == tar.TypeReg {
			require.Zero(t, header.Mode&0o022, "%s: only root may write", header.Name)
			files[strings.TrimPrefix(header.Name, "/")], err = io.ReadAll(archive)
			require.NoError(t, err)
		}
	}
	require.Contains(t, files, certificates)
	require.Contains(t, files, binary)
	require.Len(t, files, 2, "nothing else, no shell")
	return files[binary]
}

// sbom checks that the SBOM of the image names each module in the image's binary with its version. The archives
// contain the same SBOM.
func (r *release) sbom(t *testing.T, arch string, digest v1.Hash, program []byte) {
	t.Helper()
	built, err := buildinfo.Read(bytes.NewReader(program))
	require.NoError(t, err)
	written := read(t, filepath.Join(r.folder, ".run/sbom/liqo-autoscaler-linux-"+arch+".spdx.json"))
	attached := r.run(t, r.folder, "bin/cosign", "download", "sbom", r.image()+"@"+digest.String())
	require.JSONEq(t, written, attached)
	var spdx struct {
		Packages []struct{ Name, VersionInfo string }
	}
	require.NoError(t, json.Unmarshal([]byte(attached), &spdx))
	named := map[string]string{}
	for _, p := range spdx.Packages {
		named[p.Name] = p.VersionInfo
	}
	require.Contains(t, named, built.Main.Path)
	for _, m := range built.Deps {
		for m.Replace != nil {
			m = m.Replace
		}
		require.Equal(t, m.Version, named[m.Path], m.Path)
	}
	t.Logf("linux/%s: the SBOM names %d modules", arch, len(built.Deps))
}

// signed checks the signature of an image or a chart. ref is its reference.
func (r *release) signed(t *testing.T, ref string) {
	t.Helper()
	verify := func(public string) error {
		return r.try(r.folder, "bin/cosign", "verify", "--key", public, "--insecure-ignore-tlog", ref)
	}
	require.NoError(t, verify(r.public), ref)
	require.Error(t, verify(r.otherPublic), "another key: %s", ref)
}

// tarball checks the image file that the quickstart loads. With this file, the quickstart needs no registry.
func (r *release) tarball(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.tar")
	r.run(t, r.folder, "make", "image", "TAR="+file, "VERSION="+version, "IMAGE="+r.image())
	tag, err := name.NewTag(r.image() + ":" + version)
	require.NoError(t, err)
	image, err := tarball.ImageFromPath(file, &tag)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "liqo-autoscaler")
	require.NoError(t, os.WriteFile(program, check(t, image, runtime.GOARCH), 0o700))
	require.Equal(t, "liqo-autoscaler version "+version+"\n", r.run(t, "/", program, "--version"))
}

func reference(t *testing.T, text string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(text)
	require.NoError(t, err)
	return ref
}
