package deploy_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// plugin has the fields of the type Plugin of krew (v1alpha2, sigs.k8s.io/krew/pkg/index/types.go).
type plugin struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Version          string `json:"version"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Homepage         string `json:"homepage"`
		Platforms        []struct {
			URI      string                `json:"uri"`
			SHA256   string                `json:"sha256"`
			Selector *metav1.LabelSelector `json:"selector"`
			Files    []struct {
				From string `json:"from"`
				To   string `json:"to"`
			} `json:"files"`
			Bin string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// checksum writes an archive of a release, and returns the archive's line in the file of checksums.
func checksum(t *testing.T, folder, name string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(folder, name))
	require.NoError(t, err)
	zipped := gzip.NewWriter(file)
	archive := tar.NewWriter(zipped)
	for _, member := range []string{"LICENSE", "README.md", "liqo-autoscaler", "liqo-autoscaler-agent"} {
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: member, Mode: 0o755, Size: int64(len(name))}))
		_, err = archive.Write([]byte(name))
		require.NoError(t, err)
	}
	require.NoError(t, archive.Close())
	require.NoError(t, zipped.Close())
	require.NoError(t, file.Close())
	raw, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	return fmt.Sprintf("%x  %s\n", sha256.Sum256(raw), name)
}

// The manifest for krew follows krew's own rules, and contains each archive of the release with its checksum, and no
// other file of the release. `make release-check` runs the same script on the archives of a real build.
func TestKrewManifest(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	const version, page = "0.1.0-rc.1", "https://github.com/someone/liqo-autoscaler/releases/tag/v0.1.0-rc.1"
	var sums string
	byURI := map[string]string{}
	for _, platform := range []string{"darwin_arm64", "linux_amd64", "linux_arm64"} {
		name := "liqo-autoscaler_" + version + "_" + platform + ".tar.gz"
		line := checksum(t, folder, name)
		sums += line
		byURI["https://github.com/someone/liqo-autoscaler/releases/download/v0.1.0-rc.1/"+name] = line[:64]
	}
	sums += checksum(t, folder, "liqo-autoscaler_0.0.9_linux_amd64.tar.gz") +
		fmt.Sprintf("%064x  liqo-autoscaler-linux-amd64.spdx.json\n", 1)
	write := func(sums string) ([]byte, error) {
		require.NoError(t, os.WriteFile(in("checksums.txt"), []byte(sums), 0o600))
		return exec.CommandContext(t.Context(), "release/krew.sh", version, page, in("checksums.txt"),
			in("liqo-autoscaler.yaml")).CombinedOutput()
	}
	out, err := write(sums)
	require.NoError(t, err, "%s", out)
	raw, err := os.ReadFile(in("liqo-autoscaler.yaml"))
	require.NoError(t, err)
	var p plugin
	require.NoError(t, yaml.UnmarshalStrict(raw, &p))

	require.Equal(t, metav1.TypeMeta{APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin"},
		p.TypeMeta)
	require.Equal(t, "liqo-autoscaler", p.Name, "krew links kubectl-liqo_autoscaler to the binary")
	require.Equal(t, "v"+version, p.Spec.Version, "krew requires the v")
	require.Equal(t, "https://github.com/someone/liqo-autoscaler", p.Spec.Homepage)
	require.NotEmpty(t, p.Spec.Description)
	require.NotEmpty(t, p.Spec.Caveats)
	require.Regexp(t, `^[^\r\n]{1,50}$`, p.Spec.ShortDescription, "krew-index allows 50 characters")
	require.Len(t, p.Spec.Platforms, len(byURI))
	for _, platform := range p.Spec.Platforms {
		system, arch := platform.Selector.MatchLabels["os"], platform.Selector.MatchLabels["arch"]
		require.Equal(t, map[string]string{"os": system, "arch": arch}, platform.Selector.MatchLabels, "krew knows two keys")
		require.Contains(t, platform.URI, "_"+system+"_"+arch+".tar.gz")
		require.Equal(t, byURI[platform.URI], platform.SHA256, platform.URI)
		files := t.TempDir()
		for _, f := range platform.Files {
			require.Equal(t, ".", f.To)
			out, err := exec.CommandContext(t.Context(), "tar", "-xf", in(filepath.Base(platform.URI)), "-C", files,
				f.From).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		require.FileExists(t, filepath.Join(files, platform.Bin))
	}

	out, err = write(fmt.Sprintf("%064x  liqo-autoscaler_0.0.9_linux_amd64.tar.gz\n", 1))
	require.Error(t, err, "no archive of this version")
	require.Contains(t, string(out), "has no archive liqo-autoscaler_"+version+"_OS_ARCH.tar.gz")
}
