package hub

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/proc"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal"
	"github.com/liqo-autoscaler/liqo-autoscaler/e2e/temporal/dev"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/testkit"
)

var (
	cells = flag.String("cells", "", "node groups x offers, as in 10x20,50x200; empty measures nothing")
	rtts  = flag.String("rtts", "0,25,100,250", "round trips to Temporal in milliseconds")
	old   = flag.String("old", "", "a commit to measure, too")
	slots = flag.Int("slots", 0, "the worker's --driver-slots; 0 is the default")
)

// rest is the time for which the test observes a hub at rest.
const rest = 2 * time.Minute

func TestMain(m *testing.M) {
	dev.ClearEnvironment()
	os.Exit(m.Run())
}

// TestHub prints BENCH <name> <value> <unit> <ratio> <against>. The ratio compares the value with a bound in
// docs/performance.md, and is 0 without a bound.
func TestHub(t *testing.T) {
	if *cells == "" {
		t.Skip("make bench SUITE=hub runs it")
	}
	programs := [][2]string{{"now", proc.Build(t, proc.Root())}}
	if *old != "" {
		programs = append(programs, [2]string{*old, proc.Build(t, checkout(t, *old))})
	}
	empty := growth(t, temporal.NewSmall(t, t.TempDir()))
	for _, text := range strings.Split(*cells, ",") {
		for _, rtt := range strings.Split(*rtts, ",") {
			c := parse(t, text, rtt)
			for _, p := range programs {
				t.Run(p[0]+"/"+c.String(), func(t *testing.T) { measure(t, p[0], p[1], c, empty) })
			}
		}
	}
}

func parse(t *testing.T, text, rtt string) cell {
	t.Helper()
	groups, offers, ok := strings.Cut(text, "x")
	require.True(t, ok, "cell %q", text)
	var numbers [3]int
	for n, one := range []string{groups, offers, rtt} {
		number, err := strconv.Atoi(one)
		require.NoError(t, err)
		numbers[n] = number
	}
	return cell{groups: numbers[0], offers: numbers[1], room: 2, rtt: time.Duration(numbers[2]) * time.Millisecond}
}

// checkout writes the files of a commit into a folder of the test.
func checkout(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `git archive "$1" | tar -x -C "$2"`, "sh", commit, dir)
	cmd.Dir = proc.Root()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}

// settles is the time after which the first rounds and retries of a hub have ended.
const settles = 75 * time.Second

// growth returns the number of bytes by which the database of an unused server grows during rest.
func growth(t *testing.T, s *temporal.Small) int64 {
	t.Helper()
	pass(t, settles, func() error { return nil })
	before := used(t, s.File)
	pass(t, rest, func() error { return nil })
	return used(t, s.File) - before
}

// pass waits for the time d, and calls the function do every ten seconds, as CA calls Refresh.
func pass(t *testing.T, d time.Duration, do func() error) {
	t.Helper()
	tick, end := time.NewTicker(10*time.Second), time.After(d)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := do(); err != nil {
				t.Log("Refresh fails:", err)
			}
		case <-end:
			return
		}
	}
}

// measure measures one cell.
func measure(t *testing.T, name, program string, c cell, empty int64) {
	began := time.Now()
	s := newStack(t, program, c)
	print := func(what string, value float64, unit string, bound float64) {
		ratio := 0.0
		if bound > 0 {
			ratio = value / bound
		}
		fmt.Printf("BENCH hub-%s-%s-%s %.2f %s %.2f bound\n", name, c, what, value, unit, ratio)
	}
	testkit.Until(t, 5*time.Minute, "all node groups are served", func() error { return s.served(c.groups) })
	print("ready", time.Since(began).Seconds(), "s", 0)

	first := 19*c.rtt.Seconds() + 2
	before, refreshes := requests(t, s.temporal), s.refreshes
	for n, name := range []string{"cold", "warm"} { // on the same provider, which is the cheapest
		asked := time.Now()
		s.grow(0, 1)
		s.stamped(n + 1)
		print("first-node-"+name, time.Since(asked).Seconds(), "s", first)
		s.until(3*time.Minute, 0, n+1)
		print("first-node-"+name+"-seen", time.Since(asked).Seconds(), "s", 0)
	}
	more := 2*c.peered() - 2
	s.grow(0, more)
	print("growth", s.until(10*time.Minute, 0, 2+more).Seconds(), "s", 0)
	nodes := float64(2 + more)
	describes := sum(before, requests(t, s.temporal), "DescribeWorkflowExecution")
	describes -= float64((s.refreshes - refreshes) * c.groups) // each Refresh reads each group once
	print("describes-a-scale-out", describes/nodes, "requests", 12)

	pass(t, settles, s.refresh)
	before = requests(t, s.temporal)
	bytes := used(t, s.temporal.File)
	processes := map[string]int{"temporal": s.temporal.Pid(), "worker": s.worker.Pid(), "server": s.server.Pid()}
	spent := map[string]time.Duration{}
	for who, pid := range processes {
		spent[who] = testkit.CPU(t, pid)
	}
	pass(t, rest, s.refresh)
	after := requests(t, s.temporal)
	for _, who := range []string{"temporal", "worker", "server"} {
		print("rest-cpu-"+who, 100*(testkit.CPU(t, processes[who])-spent[who]).Seconds()/rest.Seconds(), "%", 0)
	}
	print("rest-requests", sum(before, after)/rest.Minutes(), "1/min", 0)
	print("rest-describes", sum(before, after, "DescribeWorkflowExecution")/rest.Minutes(), "1/min", 0)
	print("rest-billed", sum(before, after, billed...)/rest.Minutes(), "actions/min", 0)
	day := float64(used(t, s.temporal.File)-bytes-empty) / (1 << 20) * (24 * time.Hour).Seconds() / rest.Seconds()
	print("rest-database", day, "MiB/day", 1)
	for _, took := range scrape(t, s.workerMetrics, "liqo_autoscaler_observer_last_round_duration_seconds") {
		print("round", took.value, "s", 20)
	}

	require.NoError(t, s.world.SetKnobs(t.Context(), "p0", sim.Knobs{Unreachable: true}))
	dead := time.Now()
	testkit.Until(t, 8*time.Minute, "the dead provider's nodes count no longer", func() error {
		if err := s.refresh(); err != nil {
			return err
		}
		n, err := s.running(0)
		if err == nil && n == int(nodes) {
			err = fmt.Errorf("%d run", n)
		}
		return err
	})
	print("dead-provider", time.Since(dead).Seconds(), "s", (3 * time.Minute).Seconds())
}
