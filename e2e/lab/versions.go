package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// These versions are built unless Options or the environment select other versions. For each version of Kubernetes
// and of Liqo there is a module in the folder modules. helm and temporal are installed by version.
const (
	DefaultKubernetes = "v1.33.1"
	DefaultLiqo       = "v1.2.0"

	etcdVersion     = "v3.5.21"
	helmVersion     = "v3.17.0"
	temporalVersion = "v1.5.1"
	// wireGuardVersion is the version that Liqo's modules require.
	wireGuardVersion = "v0.0.0-20220904105730-b51010ba13f0"
)

// These environment variables apply when the corresponding option is not set.
const (
	EnvKubernetes = "LIQO_AUTOSCALER_LAB_KUBERNETES"
	EnvLiqo       = "LIQO_AUTOSCALER_LAB_LIQO"
	EnvSlot       = "LAB_SLOT"
)

// versions holds the versions of a lab's parts. If kubelet is true, Kubernetes' kubelet is built too. source, if set,
// is a folder with Liqo's source that is built instead of the version, and digest is the digest of this source.
type versions struct {
	kubernetes, liqo string
	source, digest   string
	kubelet          bool
}

// choose returns the full versions for the requested ones. A module must exist for each. "" means the version in the
// environment, or else the default. "v1.1" means the newest 1.1. The leading v may be left out.
func choose(modules, kubernetes, liqo string) (v versions, err error) {
	if v.kubernetes, err = pick(filepath.Join(modules, "kubernetes"), kubernetes, os.Getenv(EnvKubernetes),
		DefaultKubernetes); err != nil {
		return v, err
	}
	if v.liqo, err = pick(filepath.Join(modules, "liqo"), liqo, os.Getenv(EnvLiqo), DefaultLiqo); err != nil {
		return v, err
	}
	if dir := os.Getenv(EnvLiqoSource); dir != "" {
		v.source, v.digest, err = liqoSource(dir)
	}
	return v, err
}

func pick(dir string, asked ...string) (string, error) {
	want := asked[slices.IndexFunc(asked, func(s string) bool { return s != "" })]
	want = "v" + strings.TrimPrefix(want, "v")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("list versions the lab can build: %w", err)
	}
	var have []*version.Version
	var names []string
	for _, e := range entries {
		if v, err := version.ParseSemantic(e.Name()); err == nil {
			names = append(names, e.Name())
			if e.Name() == want || strings.HasPrefix(e.Name(), want+".") {
				have = append(have, v)
			}
		}
	}
	if len(have) == 0 {
		return "", fmt.Errorf("choose %s %s: the lab has %s; add the module %s",
			filepath.Base(dir), want, strings.Join(names, ", "), filepath.Join(dir, want))
	}
	newest := slices.MaxFunc(have, func(a, b *version.Version) int {
		switch {
		case a.LessThan(b):
			return -1
		case b.LessThan(a):
			return 1
		}
		return 0
	})
	return "v" + newest.String(), nil
}

// dir returns the folder for the binaries of these versions, in the user's cache.
func (v versions) dir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find folder for lab binaries: %w", err)
	}
	liqo := v.liqo
	if v.source != "" {
		liqo += "-source-" + v.digest
	}
	return filepath.Join(cache, "liqo-autoscaler",
		fmt.Sprintf("lab-kube-%s-liqo-%s-etcd-%s-temporal-%s", v.kubernetes, liqo, etcdVersion, temporalVersion)), nil
}

// stamp returns the linker flags that set the version of the Kubernetes binaries. Without these flags the binaries
// report v0.0.0, which Liqo's clients refuse.
func (v versions) stamp() string {
	parsed := version.MustParseSemantic(v.kubernetes) // pick has already parsed this version
	const base, client = "k8s.io/component-base/version.", "k8s.io/client-go/pkg/version."
	return fmt.Sprintf("-X %sgitVersion=%s -X %sgitMajor=%d -X %sgitMinor=%d -X %sgitVersion=%s",
		base, v.kubernetes, base, parsed.Major(), base, parsed.Minor(), client, v.kubernetes)
}

// imageWireGuard reports whether this version of Liqo runs the program wireguard-go that is in its image. All
// versions before 1.2 do. In later versions, WireGuard is part of Liqo's own program.
func imageWireGuard(liqo string) bool { return before12(liqo) }

// oneSlice reports whether this version of Liqo loses pods when a provider has several slices. This happens in all
// versions before 1.2 (liqotech/liqo#3257).
func oneSlice(liqo string) bool { return before12(liqo) }

func before12(liqo string) bool {
	v, err := version.ParseSemantic(liqo)
	return err == nil && v.LessThan(version.MajorMinor(1, 2))
}
