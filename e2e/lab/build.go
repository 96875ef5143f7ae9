package lab

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/keep"
)

// part is a group of the lab's binaries that have the same source. Either a module of ours requires the module of the
// source, and the binaries are built in our module, or the binaries are installed by version.
type part struct {
	source   string   // module@version of the source
	module   string   // folder below modules; empty for installed binaries
	tree     string   // folder with the source itself; if set, it is used instead of module
	packages []string // the packages to build, or the package to install
	names    []string // names of the binaries
	into     string   // folder under the binaries' folder
	ldflags  string
	env      []string // environment of the build, in addition to the environment of this process
}

// kubelet returns the part that is added if Options.Kubelet is set.
func kubelet(v versions) part {
	return part{source: "k8s.io/kubernetes@" + v.kubernetes, module: "kubernetes/" + v.kubernetes,
		packages: []string{"k8s.io/kubernetes/cmd/kubelet"}, names: []string{"kubelet"}, ldflags: v.stamp()}
}

func parts(v versions) []part {
	kubernetes := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}
	liqo := []string{"liqo-controller-manager", "crd-replicator", "virtual-kubelet", "webhook", "liqoctl",
		"ipam", "gateway", "gateway/wireguard"}
	list := []part{
		{source: "go.etcd.io/etcd/server/v3@" + etcdVersion, module: "etcd/" + etcdVersion,
			packages: []string{"go.etcd.io/etcd/server/v3"}, names: []string{"etcd"}},
		{source: "k8s.io/kubernetes@" + v.kubernetes, module: "kubernetes/" + v.kubernetes,
			packages: prefixed("k8s.io/kubernetes/cmd/", kubernetes), names: kubernetes, ldflags: v.stamp()},
		{source: liqoModule + "@" + v.liqo, module: "liqo/" + v.liqo, tree: v.source,
			packages: prefixed(liqoModule+"/cmd/", liqo), names: bases(liqo), into: "liqo"},
		{source: "helm.sh/helm/v3@" + helmVersion, packages: []string{"helm.sh/helm/v3/cmd/helm"}, names: []string{"helm"}},
		{source: "github.com/temporalio/cli@" + temporalVersion, packages: []string{"github.com/temporalio/cli/cmd/temporal"},
			names: []string{"temporal"}},
	}
	if imageWireGuard(v.liqo) {
		list = append(list, part{source: "golang.zx2c4.com/wireguard@" + wireGuardVersion, module: "liqo/" + v.liqo,
			packages: []string{"golang.zx2c4.com/wireguard"}, names: []string{keep.WireGuardGo}, into: keep.WireGuardGo})
	}
	if v.kubelet {
		list = append(list, kubelet(v))
	}
	return list
}

func bases(paths []string) []string {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		out = append(out, path.Base(p))
	}
	return out
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, prefix+n)
	}
	return out
}

// sourceDir returns the folder with the source of this package.
func sourceDir() (string, error) {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("find lab sources: no source path in this binary")
	}
	dir := filepath.Dir(file)
	if _, err := os.Stat(filepath.Join(dir, "modules")); err != nil {
		return "", fmt.Errorf("find lab sources (built with -trimpath?): %w", err)
	}
	return dir, nil
}

// build builds the binaries and Liqo's chart, unless they exist, and returns their folder. Only one build runs at a
// time on a machine.
func build(ctx context.Context, sources string, v versions, log func(string, ...any)) (string, error) {
	bin, err := v.dir()
	if err != nil {
		return "", err
	}
	if built(bin, v) {
		return bin, nil
	}
	for _, p := range parts(v) {
		if err := os.MkdirAll(filepath.Join(bin, p.into), 0o755); err != nil {
			return "", fmt.Errorf("make folder for lab binaries: %w", err)
		}
	}
	lock, err := flock(ctx, filepath.Join(bin, ".lock"), func() { log("lab: waiting for another build of %s", bin) })
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if built(bin, v) { // another process has built the binaries while this process waited for the lock
		return bin, nil
	}
	log("lab: building Kubernetes %s, Liqo %s and what they need into %s (about 11 minutes from nothing)", v.kubernetes,
		v.liqo, bin)
	for _, p := range parts(v) {
		if err := p.build(ctx, sources, bin, log); err != nil {
			return "", err
		}
	}
	module := v.source
	if module == "" {
		module = filepath.Join(sources, "modules", "liqo", v.liqo)
	}
	return bin, copyChart(ctx, module, filepath.Join(bin, chartFolder))
}

const chartFolder = "chart"

// built reports whether the folder contains all binaries and the chart. A file that exists is complete, because each
// file is moved into the folder by a rename.
func built(bin string, v versions) bool {
	return exists(filepath.Join(bin, chartFolder)) && all(parts(v), func(p part) bool {
		return all(p.names, func(name string) bool { return exists(filepath.Join(bin, p.into, name)) })
	})
}

func (p part) build(ctx context.Context, sources, bin string, log func(string, ...any)) error {
	target := filepath.Join(bin, p.into)
	if all(p.names, func(name string) bool { return exists(filepath.Join(target, name)) || p.borrow(bin, name) }) {
		return nil
	}
	began := time.Now()
	fresh, err := os.MkdirTemp(bin, ".new-") // in the same file system, so that a rename can move each complete binary
	if err != nil {
		return fmt.Errorf("build lab binaries: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	_, version, _ := strings.Cut(p.source, "@")
	args := []string{"install", p.packages[0] + "@" + version}
	dir := sources
	if p.module != "" {
		out := fresh + "/"
		if len(p.packages) == 1 {
			out += p.names[0]
		}
		args = append([]string{"build", "-ldflags", "-s -w " + p.ldflags, "-o", out}, p.packages...)
		dir = filepath.Join(sources, "modules", p.module)
	}
	if p.tree != "" {
		dir = p.tree
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOBIN="+fresh, "GOFLAGS=-buildvcs=false", "GOWORK=off")
	cmd.Env = append(cmd.Env, p.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", strings.Join(p.names, ", "), err, lastBytes(string(out), 4000))
	}
	for _, name := range p.names {
		if err := os.Rename(filepath.Join(fresh, name), filepath.Join(target, name)); err != nil {
			return fmt.Errorf("build lab binaries: %w", err)
		}
	}
	log("lab: built %s in %.0f s", strings.Join(p.names, ", "), time.Since(began).Seconds())
	return nil
}

// borrow links a binary from the folder of another set of versions, if that binary was built from the same source. It
// reports whether it has linked a binary. It does nothing if the source is a folder, because no version identifies
// the content of a folder.
func (p part) borrow(bin, name string) bool {
	if p.tree != "" {
		return false
	}
	others, _ := filepath.Glob(filepath.Join(filepath.Dir(bin), "lab-*", p.into, name))
	for _, other := range others {
		if p.made(other) && os.Link(other, filepath.Join(bin, p.into, name)) == nil {
			return true
		}
	}
	return false
}

// made reports whether a binary was built from the part's source. It reads the modules that Go records in a binary.
func (p part) made(path string) bool {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return false
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path+"@"+m.Version == p.source {
			return true
		}
	}
	return false
}

// copyChart copies Liqo's Helm chart out of its module.
func copyChart(ctx context.Context, module, to string) error {
	if exists(to) {
		return nil
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", liqoModule)
	list.Dir, list.Env = module, append(os.Environ(), "GOWORK=off")
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("find Liqo's chart: %w", err)
	}
	fresh := to + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("copy Liqo's chart: %w", err)
	}
	if err := os.CopyFS(fresh, os.DirFS(filepath.Join(strings.TrimSpace(string(out)), "deployments",
		"liqo"))); err != nil {
		return fmt.Errorf("copy Liqo's chart: %w", err)
	}
	return os.Rename(fresh, to)
}

func all[T any](list []T, f func(T) bool) bool {
	for _, x := range list {
		if !f(x) {
			return false
		}
	}
	return true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + s[len(s)-n:]
}
