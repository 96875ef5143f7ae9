package keep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/lab/internal/pids"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
)

// Run starts the lab, and calls the function `up` when the whole lab answers. It runs the lab until ctx ends. Then it
// ends every process and removes the root. If a process fails at the start, the error contains its name and the end
// of its log. Run calls the function `log` with progress messages, also from several goroutines concurrently.
func Run(ctx context.Context, config Config, up func(), log func(string, ...any)) error {
	l := &lab{Config: config, kubeletPort: map[int]bool{}}
	if err := os.MkdirAll(filepath.Join(l.Root, "log"), 0o755); err != nil {
		return fmt.Errorf("make lab root: %w", err)
	}
	if err := pids.Append(l.Root, pids.Keeper, os.Getpid()); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(l.Root, "log", "keeper.log"))
	if err != nil {
		return fmt.Errorf("make log of the keeper: %w", err)
	}
	defer file.Close()
	// client-go logs into the keeper's log file, because the owner of the lab does not need these lines.
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(file))))
	say := log
	log = func(format string, args ...any) {
		_, _ = fmt.Fprintf(file, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
		say(format, args...)
	}
	ctx, stop := context.WithCancel(ctx)
	var tending sync.WaitGroup
	err = l.start(ctx, &tending, log)
	if err == nil {
		up()
		<-ctx.Done()
	}
	stop()
	return errors.Join(err, l.down(&tending, log))
}

// start starts all clusters concurrently. It also starts the goroutines that maintain the clusters until ctx ends.
func (l *lab) start(ctx context.Context, tending *sync.WaitGroup, log func(string, ...any)) (err error) {
	if l.pki, err = newPKI(filepath.Join(l.Root, "pki"), l.addresses()...); err != nil {
		return err
	}
	var clusters []*cluster
	for i, name := range l.Clusters() {
		c, err := l.cluster(name, i)
		if err != nil {
			return err
		}
		clusters = append(clusters, c)
	}
	began := time.Now()
	group, starting := errgroup.WithContext(ctx)
	for _, c := range clusters {
		group.Go(func() error {
			if err := c.up(starting, func(what string) {
				log("%s: %s after %.1f s", c.name, what,
					time.Since(began).Seconds())
			}); err != nil {
				return fmt.Errorf("start cluster %s: %w", c.name, err)
			}
			tending.Go(func() { c.renewLeases(ctx, log) })
			tending.Go(func() { c.runKubelet(ctx, log) })
			for _, of := range c.containers {
				tending.Go(func() { c.again(ctx, of, log) })
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return l.whole()
}

// whole returns an error when a process has ended. It is needed because start does not wait until every process
// answers.
func (l *lab) whole() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.processes {
		if ended(p) {
			return fmt.Errorf("process %s has ended, its log ends:\n%s", p.Name, proc.Tail(p.Log, 20))
		}
	}
	return nil
}

func (c *cluster) up(ctx context.Context, reached func(string)) error {
	ch, err := c.render(ctx)
	if err != nil {
		return err
	}
	if err := c.controlPlane(ctx); err != nil {
		return err
	}
	reached("control plane")
	if err := c.registerNode(ctx); err != nil {
		return err
	}
	if err := c.installLiqo(ctx, ch); err != nil {
		return err
	}
	reached("Liqo")
	return nil
}

// down kills all processes. They need not end in order, because the state of the lab is removed.
func (l *lab) down(tending *sync.WaitGroup, log func(string, ...any)) error {
	began := time.Now()
	l.mu.Lock()
	processes := l.processes
	l.mu.Unlock()
	for _, p := range processes {
		_ = p.Signal(syscall.SIGKILL)
	}
	tending.Wait() // a goroutine may be starting a virtual kubelet at this moment
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.processes {
		p.Kill() // waits until the process has ended
	}
	if err := os.RemoveAll(l.Root); err != nil {
		return fmt.Errorf("remove lab root: %w", err)
	}
	log("lab: down in %.1f s", time.Since(began).Seconds())
	return nil
}
