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
	// modules. Default: the environment's EnvKubernetes and EnvLiqo, else DefaultKubernetes and DefaultLiqo.
	KubernetesVersion string
	LiqoVersion       string
	// Slot allows labs to run concurrently, one for each slot from 0 to 9. Default: the environment's EnvSlot, else 0.
	Slot int
	// Root is the folder of state, logs and kubeconfigs; Down removes it. Default: the folder "lab", or "lab-<slot>", in
	// os.TempDir.
	Root string
	// Gateways makes the gateways of Liqo's networking run, with the WireGuard of each pod in its own network namespace.
	// Two clusters with a network are then Connected, and Cut can separate them. It requires CAP_SYS_ADMIN, CAP_NET_ADMIN
	// and /dev/net/tun. Without Gateways, such pods are only reported as running, and no network is ever connected.
	Gateways bool
	// PodStart is the time between the assignment of a pod to a node and its first process. A real kubelet needs this time
	// for sandbox, network and image. Default: 0.
	PodStart time.Duration
	// NoNetworking installs Liqo without its networking module, and with Liqo's check of the network disabled.
	NoNetworking bool
	// Kubelet adds the binary kubelet to Bin, for nodes that package node starts.
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
	// The versions that run, in full: v1.2.0.
	KubernetesVersion string
	LiqoVersion       string

	keeper *keeper
	lock   *lock
	down   sync.Once
	err    error
}

// Consumer is the name and Liqo cluster id of the consumer cluster.
const Consumer = keep.Consumer

// Start builds the missing binaries, waits for the machine's lab lock, and removes the remains of an earlier run. It
// then starts the lab and returns when the whole lab answers. The context bounds the start and does not end the lab.
// The lab ends with Down, or when this process ends for any reason. An error of the start names the failed process and
// contains the end of its log.
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
// starts afterwards needs no Go module from the network.
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

// Built returns the folder of the binaries of two versions, and whether it is complete. A version may be "", as in
// Options.
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

// possible returns an error before anything is built when this machine cannot run gateways.
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

// ForTest starts a lab like Start. The end of the test ends the lab, and shows the ends of its logs if the test failed.
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

// Down ends every process of the lab, removes its root and frees the lock; see also EnvRights. A second call returns
// the result of the first.
func (l *Lab) Down() error {
	l.down.Do(func() {
		l.err = l.recordRights()
		if l.keeper != nil {
			l.err = errors.Join(l.err, l.keeper.end(30*time.Second))
		}
		l.err = errors.Join(l.err, pids.Clear(l.Root)) // has an effect only when the keeper was killed
		l.lock.release()
	})
	return l.err
}

// Kubeconfig returns the path of a cluster's admin kubeconfig: Consumer or one of Providers.
func (l *Lab) Kubeconfig(cluster string) string { return filepath.Join(l.Root, cluster+".kubeconfig") }

// Tails returns the ends of all logs of the lab.
func (l *Lab) Tails(lines int) string { return proc.Tails(filepath.Join(l.Root, "log"), lines) }

// OneSlice reports whether a provider may have at most one slice. A Liqo older than 1.2 loses the pods of one slice
// when a second slice exists (liqotech/liqo#3257).
func (l *Lab) OneSlice() bool { return oneSlice(l.LiqoVersion) }
