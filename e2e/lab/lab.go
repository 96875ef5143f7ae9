package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// Options say which lab to start.
type Options struct {
	// Providers is the number of provider clusters. Default 1.
	Providers int
	// LiqoTag is the version Liqo's chart is rendered for. Default: the version that was built.
	LiqoTag string
	// Slot lets a second lab run beside the first: one per slot, 0 to 9. Default: the environment's LAB_SLOT, else 0.
	Slot int
	// Root is the folder of state, logs and kubeconfigs; it is removed by Down. Default: the folder "lab", or "lab-<slot>",
	// in os.TempDir.
	Root string
	// Log gets a line now and then. Default: none.
	Log func(format string, args ...any)
}

// Lab is a running lab.
type Lab struct {
	Root string
	// Bin is the folder of the binaries, temporal, kubectl and helm included; liqoctl is in its folder liqo.
	Bin       string
	Providers []string // names and Liqo cluster ids: provider1, provider2, ...

	script string
	shift  int // of ports
	lock   *lock
	down   sync.Once
	err    error
}

// Consumer is the name and Liqo cluster id of the consumer cluster.
const Consumer = "consumer"

// Start builds what is missing, waits for the machine's lab lock, clears what an earlier run left, starts the lab and
// returns once all of it answers. The context bounds the start; it does not end the lab. The lab goes down with Down, or
// by itself a second after this process has ended.
func Start(ctx context.Context, o Options) (*Lab, error) {
	if o.Providers == 0 {
		o.Providers = 1
	}
	if o.Slot == 0 {
		o.Slot, _ = strconv.Atoi(os.Getenv("LAB_SLOT"))
	}
	if o.Root == "" {
		o.Root = filepath.Join(os.TempDir(), "lab"+suffix(o.Slot))
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	dir, err := sourceDir()
	if err != nil {
		return nil, err
	}
	bin, tag, err := build(ctx, dir, o.Log)
	if err != nil {
		return nil, err
	}
	if o.LiqoTag == "" {
		o.LiqoTag = tag
	}
	lock, err := acquire(ctx, o.Slot, o.Log)
	if err != nil {
		return nil, err
	}
	l := &Lab{Root: o.Root, Bin: bin, script: filepath.Join(dir, "lab.py"), lock: lock, shift: 200 * o.Slot}
	for i := range o.Providers {
		l.Providers = append(l.Providers, "provider"+strconv.Itoa(i+1))
	}
	if err := l.up(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start lab: %w\n%s", err, proc.Tails(filepath.Join(l.Root, "log"), 5)), l.Down())
	}
	return l, nil
}

// ForTest is Start with the test's end bringing the lab down, and the ends of its logs shown when the test failed.
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

// Down ends every process of the lab, removes its root and frees the lock. The second call returns what the first did.
func (l *Lab) Down() error {
	l.down.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		l.err = l.python(ctx, "down", "--root", l.Root)
		l.lock.release()
	})
	return l.err
}

// Kubeconfig is the path of a cluster's admin kubeconfig: Consumer or one of Providers.
func (l *Lab) Kubeconfig(cluster string) string { return filepath.Join(l.Root, cluster+".kubeconfig") }

// Tails shows the ends of all logs of the lab.
func (l *Lab) Tails(lines int) string { return proc.Tails(filepath.Join(l.Root, "log"), lines) }

func (l *Lab) up(ctx context.Context, o Options) error {
	for _, root := range append(l.lock.leftovers(), l.Root) { // the ports are the same whatever the root
		if err := l.python(ctx, "down", "--root", root); err != nil {
			return err
		}
	}
	if err := l.lock.note(l.Root); err != nil {
		return err
	}
	start := time.Now()
	if err := l.python(ctx, "up", "--root", l.Root, "--bin", l.Bin, "--tag", o.LiqoTag,
		"--providers", strconv.Itoa(o.Providers), "--owner", strconv.Itoa(os.Getpid()), "--slot", strconv.Itoa(o.Slot)); err != nil {
		return err
	}
	if err := l.ready(ctx); err != nil {
		return err
	}
	o.Log("lab: %d providers up in %.1f s, root %s", o.Providers, time.Since(start).Seconds(), l.Root)
	return nil
}

// python runs lab.py and puts the end of what it said into the error.
func (l *Lab) python(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "python3", append([]string{l.script}, args...)...).CombinedOutput()
	if err != nil {
		said := strings.TrimSpace(string(out))
		if len(said) > 2000 {
			said = "…" + said[len(said)-2000:]
		}
		return fmt.Errorf("run lab.py %s: %w: %s", args[0], err, said)
	}
	return nil
}
