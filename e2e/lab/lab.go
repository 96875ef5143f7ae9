package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/keep"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/pids"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// Options describes the lab to start.
type Options struct {
	// Providers is the number of provider clusters. Default 1.
	Providers int
	// KubernetesVersion and LiqoVersion apply to all clusters. They may be shortened: "v1.1" means the newest 1.1 in
	// the folder modules. Default: the environment variables EnvKubernetes and EnvLiqo, or else DefaultKubernetes and
	// DefaultLiqo.
	KubernetesVersion string
	LiqoVersion       string
	// Slot is a number from 0 to 9. Labs with different slots can run concurrently. Default: the environment variable
	// EnvSlot, or else 0.
	Slot int
	// Root is the folder for state, logs and kubeconfigs; Down removes it. Default: the folder "lab" in os.TempDir,
	// or "lab-<slot>" if the slot is not 0.
	Root string
	// Gateways reports whether the gateways of Liqo's networking run as processes. The WireGuard of each gateway pod
	// is then in a network namespace of its own, the Connection between two clusters with a network becomes
	// Connected, and Cut can interrupt it. Gateways requires CAP_SYS_ADMIN, CAP_NET_ADMIN and /dev/net/tun. Without
	// Gateways, gateway pods are only reported as running, and no network is ever connected.
	Gateways bool
	// PodStart is the time from the assignment of a pod to a node until the first process of the pod starts. A real
	// kubelet needs this time for sandbox, network and image. Default: 0.
	PodStart time.Duration
	// NoNetworking reports whether Liqo is installed without its networking module. Liqo's check of the network is
	// then disabled.
	NoNetworking bool
	// Kubelet reports whether Bin also contains the binary kubelet, for nodes that package node starts.
	Kubelet bool
	// Log receives progress messages. Default: none.
	Log func(format string, args ...any)
}

// Lab is a running lab.
type Lab struct {
	Root string
	// Bin is the folder of the binaries, including temporal, kubectl and helm. liqoctl is in its subfolder liqo.
	Bin       string
	Providers []string // names and Liqo cluster ids: provider1, provider2, ...
	// KubernetesVersion and LiqoVersion are the full versions that run, such as v1.2.0.
	KubernetesVersion string
	LiqoVersion       string

	keeper *keeper
	lock   *lock
	down   sync.Once
	err    error
}

// Consumer is the name and Liqo cluster id of the consumer cluster.
const Consumer = keep.Consumer

// Start builds the missing binaries, waits for the machine's lab lock, and removes the processes and files that an
// earlier run has left behind. It then starts the lab and returns when the whole lab answers. ctx bounds only the
// start: if ctx ends later, the lab continues. The lab ends with Down, or when this process ends for any reason. If a
// process fails at the start, the error contains its name and the end of its log.
func Start(ctx context.Context, o Options) (*Lab, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	if err := o.possible(); err != nil {
		return nil, fmt.Errorf("start lab: %w", err)
	}
	sources, v, bin, err := o.build(ctx)
	if err != nil {
		return nil, err
	}
	lock, err := acquire(ctx, o.Slot, o.Log)
	if err != nil {
		return nil, err
	}
	config := keep.Config{Root: o.Root, Bin: bin, LiqoVersion: v.liqo, Providers: o.Providers, Slot: o.Slot,
		NoNetworking: o.NoNetworking, Gateways: o.Gateways, PodStart: o.PodStart}
	l := &Lab{Root: o.Root, Bin: bin, Providers: config.Clusters()[1:], KubernetesVersion: v.kubernetes,
		LiqoVersion: v.liqo, lock: lock}
	if err := l.start(ctx, sources, config, o.Log); err != nil {
		_ = l.Down()
		return nil, fmt.Errorf("start lab: %w", err)
	}
	return l, nil
}

// Build builds the missing binaries for a lab with these options, and returns the folder of the binaries. A lab that
// starts afterwards does not download Go modules.
func Build(ctx context.Context, o Options) (bin string, err error) {
	if err := o.complete(); err != nil {
		return "", err
	}
	sources, _, bin, err := o.build(ctx)
	if err != nil {
		return "", err
	}
	_, err = buildKeeper(ctx, sources, o.Slot)
	return bin, err
}

func (o *Options) build(ctx context.Context) (sources string, v versions, bin string, err error) {
	if sources, err = sourceDir(); err != nil {
		return "", v, "", err
	}
	if v, err = choose(filepath.Join(sources, "modules"), o.KubernetesVersion, o.LiqoVersion); err != nil {
		return "", v, "", err
	}
	v.kubelet = o.Kubelet
	bin, err = build(ctx, sources, v, o.Log)
	return sources, v, bin, err
}

// Built returns the folder of the binaries for these versions, and reports whether the folder is complete. A version
// may be "", as in Options.
func Built(kubernetes, liqo string) (bin string, complete bool, err error) {
	sources, err := sourceDir()
	if err != nil {
		return "", false, err
	}
	v, err := choose(filepath.Join(sources, "modules"), kubernetes, liqo)
	if err != nil {
		return "", false, err
	}
	if bin, err = v.dir(); err != nil {
		return "", false, err
	}
	return bin, built(bin, v), nil
}

// complete sets the unset options to their defaults.
func (o *Options) complete() error {
	if o.Providers == 0 {
		o.Providers = 1
	}
	if slot := os.Getenv(EnvSlot); o.Slot == 0 && slot != "" {
		n, err := strconv.Atoi(slot)
		if err != nil {
			return fmt.Errorf("read %s: %w", EnvSlot, err)
		}
		o.Slot = n
	}
	if o.Slot < 0 || o.Slot > 9 || o.Providers < 0 || o.Providers > 9 {
		return fmt.Errorf("start lab: slot %d and %d providers: both are at most 9", o.Slot, o.Providers)
	}
	if o.Root == "" {
		o.Root = filepath.Join(os.TempDir(), "lab"+suffix(o.Slot))
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return nil
}

// possible returns an error when the options need gateways and this machine cannot run them. It is called before
// anything is built.
func (o *Options) possible() error {
	switch {
	case !o.Gateways:
		return nil
	case o.NoNetworking:
		return errors.New("gateways without networking: choose one of Gateways and NoNetworking")
	}
	return keep.CheckGateways()
}

func (l *Lab) start(ctx context.Context, sources string, config keep.Config, log func(string, ...any)) error {
	path, err := buildKeeper(ctx, sources, config.Slot)
	if err != nil {
		return err
	}
	for _, root := range append(l.lock.leftovers(), l.Root) { // the ports do not depend on the root
		if err := pids.Clear(root); err != nil {
			return err
		}
	}
	if err := l.lock.note(l.Root); err != nil {
		return err
	}
	began := time.Now()
	if l.keeper, err = startKeeper(path, config, l.lock, log); err != nil {
		return err
	}
	if err := l.keeper.await(ctx); err != nil {
		return err
	}
	log("lab: Kubernetes %s and Liqo %s, %d providers, up in %.1f s, root %s",
		l.KubernetesVersion, l.LiqoVersion, len(l.Providers), time.Since(began).Seconds(), l.Root)
	return nil
}

// ForTest starts a lab as Start does. The lab ends when the test ends. If the test has failed, the ends of the lab's
// logs are shown.
func ForTest(ctx context.Context, t testing.TB, o Options) *Lab {
	t.Helper()
	if o.Log == nil {
		o.Log = t.Logf
	}
	l, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("lab logs:\n" + l.Tails(8))
		}
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Down ends every process of the lab, removes the lab's root and releases the lock; see also EnvRights. A second call
// returns the result of the first.
func (l *Lab) Down() error {
	l.down.Do(func() {
		l.err = l.recordRights()
		if l.keeper != nil {
			l.err = errors.Join(l.err, l.keeper.end(30*time.Second))
		}
		l.err = errors.Join(l.err, pids.Clear(l.Root)) // has an effect only if the keeper was killed
		l.lock.release()
	})
	return l.err
}

// Kubeconfig returns the path of the administrator's kubeconfig for a cluster: for Consumer or one of Providers.
func (l *Lab) Kubeconfig(cluster string) string { return filepath.Join(l.Root, cluster+".kubeconfig") }

// Tails returns the last lines of each log of the lab.
func (l *Lab) Tails(lines int) string { return proc.Tails(filepath.Join(l.Root, "log"), lines) }

// OneSlice reports whether a provider may have only one slice. Liqo before 1.2 loses the pods of a slice when a
// second slice exists (liqotech/liqo#3257).
func (l *Lab) OneSlice() bool { return oneSlice(l.LiqoVersion) }
