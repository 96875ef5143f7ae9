// Command mutate measures the quality of the tests. It makes random changes in the code, runs the tests on the code
// with one change at a time, and lists the changes with which all fast tests still pass. It changes no file of the
// repository. With the same seed and the same code it makes the same changes. survivors.txt explains the changes that
// no test can detect, and the changes that no test needs to detect. These changes still count as survived.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const fast = "workflows,internal/fleet/money,internal/fleet,internal/fleet/driver,internal/fleet/provider," +
	"internal/fleet/choice,internal/fleet/comparison,workflows/client,activities,grpcserver,grpcserver/config"

// These constants limit the memory and the CPU time of each process, because a change may cause an endless loop. The
// time is CPU time and not elapsed time, so that tests do not fail on a busy machine.
const (
	memory  = 16 << 30
	seconds = 180
)

type options struct {
	seed            uint64
	n, parallel     int
	packages, tests []string
	timeout         time.Duration
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the random changes; 0 chooses one")
	flag.IntVar(&o.n, "n", 150, "number of changes to try, not counting changes that do not compile")
	packages := flag.String("packages", fast, "folders of the packages to change, separated by commas")
	tests := flag.String("tests", fast,
		"folders whose tests also run when a package on which they depend has a change")
	flag.IntVar(&o.parallel, "parallel", 2, "number of changes to try concurrently")
	flag.DurationVar(&o.timeout, "timeout", 10*time.Minute,
		"limit for the tests of one package; a timeout counts as killed")
	flag.Parse()
	o.packages, o.tests = split(*packages), split(*tests)
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000) + 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func split(list string) []string {
	var folders []string
	for folder := range strings.SplitSeq(list, ",") {
		if folder = strings.TrimSpace(folder); folder != "" {
			folders = append(folders, filepath.Clean(folder))
		}
	}
	return folders
}

func run(ctx context.Context, o options) error {
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		return fmt.Errorf("bound the memory of the tests: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds}); err != nil {
		return fmt.Errorf("bound the time of the tests: %w", err)
	}
	sites, err := collect(o.packages)
	if err != nil {
		return err
	}
	tests, err := testsOf(ctx, o.packages, o.tests)
	if err != nil {
		return err
	}
	for _, folder := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(o.packages, o.tests)))) {
		if res, out := (&runner{timeout: o.timeout}).test(ctx, "", folder); res != survived {
			return fmt.Errorf("the tests of %s fail on unchanged code: repair them first\n%s", folder, out)
		}
	}
	fmt.Printf("seed %d, %d possible changes in %s\n", o.seed, len(sites), strings.Join(o.packages, ", "))
	rand.New(rand.NewPCG(o.seed, 0)).Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })

	d := &draw{sites: sites, n: o.n}
	var all sync.WaitGroup
	errs := make([]error, o.parallel)
	for w := range o.parallel {
		all.Go(func() { errs[w] = d.work(ctx, &runner{timeout: o.timeout, tests: tests}) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	d.report(o.seed)
	return nil
}

// known is the content of survivors.txt. It has one line for each explained change: the file, the change and the
// reason, separated by colons.
//
//go:embed survivors.txt
var known string

// reason returns the explanation of a change in survivors.txt, or "".
func reason(s site) string {
	for line := range strings.Lines(known) {
		if why, ok := strings.CutPrefix(line, s.file+": "+s.what+": "); ok {
			return strings.TrimSpace(why)
		}
	}
	return ""
}

// report prints the surviving changes. Those without an explanation come first.
func (d *draw) report(seed uint64) {
	explained := 0
	for _, of := range []bool{false, true} {
		for _, s := range slices.SortedFunc(slices.Values(d.survivors), func(a, b site) int {
			return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.from, b.from))
		}) {
			switch why := reason(s); {
			case (why != "") != of:
			case of:
				explained++
				fmt.Printf("  %s: %s\n", s, why)
			default:
				fmt.Printf("  %s\n", s)
			}
		}
	}
	rate := 100 * float64(d.killed) / float64(max(1, d.killed+len(d.survivors)))
	fmt.Printf("MUTATE killed=%d survived=%d explained=%d rate=%.1f%% seed=%d\n", d.killed, len(d.survivors),
		explained, rate, seed)
}

// draw gives the sites to the workers one after another, until n sites have compiled. So for a given seed, the tried
// sites are always the same.
type draw struct {
	mu        sync.Mutex
	sites     []site
	n         int
	next      int
	running   int
	killed    int
	survivors []site
	ended     sync.Cond
}

// nextSite returns the next site, or false if n sites are done or no site is left. If the sites that are now being
// tried may be the last of the n sites, nextSite waits for them.
func (d *draw) nextSite() (site, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended.L = &d.mu
	for d.running > 0 && d.killed+len(d.survivors)+d.running >= d.n {
		d.ended.Wait()
	}
	if d.next == len(d.sites) || d.killed+len(d.survivors) >= d.n {
		return site{}, false
	}
	d.next++
	d.running++
	return d.sites[d.next-1], true
}

func (d *draw) put(s site, res result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	switch res {
	case killed:
		d.killed++
		fmt.Println("killed  ", s)
	case survived:
		d.survivors = append(d.survivors, s)
		fmt.Println("survived", s)
	case unbuilt: // nextSite returns another site instead
	}
	d.ended.Broadcast()
}

func (d *draw) work(ctx context.Context, r *runner) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	r.dir = dir
	for {
		s, ok := d.nextSite()
		if !ok {
			return nil
		}
		res, err := r.try(ctx, s)
		d.put(s, res)
		if err != nil {
			return err
		}
	}
}
