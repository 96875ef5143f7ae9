package burst

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	burst  = flag.Bool("burst", false, "measure; without it the tests of this package are skipped")
	shapes = flag.String("shapes", allShapes,
		"which bursts: <groups>x<instances of each>, or <groups>x<instances>on<providers>; comma separated")
	probed = flag.Bool("probe", true, "a second pass of each shape, with Cluster Autoscaler's calls to a probe group")
	rounds = flag.Int("rounds", 2, "how often each shape and its baseline run, in turns; the medians are printed")
	fsync  = flag.Bool("fsync", true, "each shape once more on a server that flushes to the disk")
	alone  = flag.Bool("alone", true, "what one scale-out and one scale-in cost")
	warm   = flag.String("warm", "1x100", "the burst whose costs are counted with its peerings there; empty leaves it out")
	idle   = flag.Duration("idle", 2*time.Minute, "how long the idle hub is counted; 0 leaves it out")
	slots  = flag.Int("slots", 0, "the worker's --driver-slots; 0 is the default")
	limit  = flag.Duration("limit", 15*time.Minute, "how long a burst may take")
)

// allShapes lists the shapes of a full run. The first number of a shape is the number of groups, the second the
// number of instances of each. By default, ten providers together have capacity for 1.3 times the burst. With the
// suffix "on" and a number n, n providers together have capacity for exactly the burst.
const allShapes = "1x150,15x10,1x1000,50x20,1x150on5"

// probeCalls is the minimum number of calls of each kind in a full run.
const probeCalls = 200

// shape is one burst.
type shape struct {
	name                         string
	groups, instances, providers int
	room                         int  // nodes per provider
	warm                         bool // the peerings exist before the burst
}

func (s shape) total() int { return s.groups * s.instances }

func parseShape(name string) (shape, error) {
	size, providers, exact := strings.Cut(name, "on")
	groups, instances, ok := strings.Cut(size, "x")
	s := shape{name: name, providers: 10}
	var errs [3]error
	s.groups, errs[0] = strconv.Atoi(groups)
	s.instances, errs[1] = strconv.Atoi(instances)
	if exact {
		s.providers, errs[2] = strconv.Atoi(providers)
	}
	if !ok || errs != [3]error{} || s.total() <= 0 || s.providers <= 0 {
		return s, fmt.Errorf("shape %q: write <groups>x<instances> or <groups>x<instances>on<providers>, such as %s", name,
			allShapes)
	}
	s.room = (s.total()*13 + 10*s.providers - 1) / (10 * s.providers)
	if exact {
		s.room = (s.total() + s.providers - 1) / s.providers
	}
	return s, nil
}

func TestShapesAreParsed(t *testing.T) {
	for name, want := range map[string]shape{
		"15x10":    {"15x10", 15, 10, 10, 20, false},
		"1x150on5": {"1x150on5", 1, 150, 5, 30, false},
	} {
		got, err := parseShape(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"", "15", "ax3", "3xb", "0x1", "1x1on0", "1x1onx"} {
		_, err := parseShape(name)
		require.ErrorContains(t, err, "such as")
	}
}

// TestBurst measures the durations and counts the costs of bursts, and prints BENCH <name> <value> <unit> <ratio>
// <against>.
func TestBurst(t *testing.T) {
	if !*burst {
		t.Skip("a measurement: make bench SUITE=burst")
	}
	var all []shape
	for name := range strings.SplitSeq(*shapes, ",") {
		s, err := parseShape(name)
		require.NoError(t, err)
		all = append(all, s)
	}
	if *alone || *idle > 0 {
		t.Run("alone", measureAlone)
	}
	if *warm != "" {
		s, err := parseShape(*warm)
		require.NoError(t, err)
		s.warm = true
		t.Run("warm-"+s.name, func(t *testing.T) { measureWarm(t, s) })
	}
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) { measure(t, s, false) })
	}
	var p probe
	for _, s := range all {
		if *probed {
			t.Run(s.name+"-probed", func(t *testing.T) { measureProbed(t, s, &p) })
		}
	}
	p.print()
	for _, s := range all {
		if *fsync {
			t.Run(s.name+"-fsync", func(t *testing.T) { measure(t, s, true) })
		}
	}
}

// measure runs the shape and its baseline alternately on one fresh server.
func measure(t *testing.T, sh shape, disk bool) {
	s, n, name := newStack(t, sh, disk), *rounds, sh.name
	if disk {
		n, name = 1, name+"-fsync"
	}
	var outs, ins, bares []time.Duration
	var from, ready, to time.Time
	attempts := 0
	for round := range n {
		began := time.Now()
		out, tried := s.scaleOut()
		if round == 0 {
			ready = time.Now()
		}
		in := s.scaleIn()
		outs, ins, attempts = append(outs, out), append(ins, in), attempts+tried
		s.settle()
		if round == 0 {
			from, to = began, time.Now()
		}
		bares = append(bares, s.bare(round, sh.total()))
	}
	base := median(bares)
	bench("bare-"+name, base.Seconds(), "s", 1, "itself")
	bench("burst-"+name, median(outs).Seconds(), "s", median(outs).Seconds()/base.Seconds(), "bare-"+name)
	bench("scalein-"+name, median(ins).Seconds(), "s", median(ins).Seconds()/base.Seconds(), "bare-"+name)

	instances := n * sh.total()
	c := s.count(from, to)
	undone := c.undone
	bench("undone-"+name, float64(undone), "attempts", float64(undone)/float64(instances), "instances")
	refused := max(0, attempts-instances-undone) // an attempt that is refused for lack of capacity starts no undo
	bench("refused-"+name, float64(refused), "attempts", float64(refused)/float64(instances), "instances")
	bench("attempts-"+name, float64(attempts), "attempts", float64(attempts)/float64(instances), "instances")
	s.count(from, ready).printCosts("burst-"+name, sh.total())
	s.count(ready, to).printCosts("scalein-"+name, sh.total())
	c.printLimits(name)
}

// measureAlone counts the costs of one scale-out and one scale-in on a provider with a peering, and of the idle hub.
func measureAlone(t *testing.T) {
	s := newStack(t, shape{name: "alone", groups: 1, instances: 1, providers: 1, room: 4, warm: true}, false)
	s.scaleOut() // the peering stays for the next scale-out
	s.quiet()
	if *alone {
		began := time.Now()
		out, _ := s.scaleOut()
		bench("alone-out", out.Seconds(), "s", out.Seconds()/s.delays.Join.Seconds(), "join-delay")
		s.quiet()
		s.count(began, time.Now()).printCosts("scale-out-alone", 1)
		began = time.Now()
		in := s.release(1)
		bench("alone-in", in.Seconds(), "s", in.Seconds()/s.delays.Leave.Seconds(), "leave-delay")
		s.quiet()
		s.count(began, time.Now()).printCosts("scale-in-alone", 1)
	}
	if *idle > 0 {
		began := time.Now()
		s.wait(*idle)
		s.count(began, time.Now()).printIdle(*idle)
	}
}

// measureWarm counts the costs of a burst on providers with peerings.
func measureWarm(t *testing.T, sh shape) {
	s := newStack(t, sh, false)
	s.scaleOut()
	s.scaleIn()
	s.quiet()
	began := time.Now()
	s.scaleOut()
	s.quiet()
	ready := time.Now()
	s.count(began, ready).printCosts("scale-out-warm-"+sh.name, sh.total())
	s.scaleIn()
	s.quiet()
	s.count(ready, time.Now()).printCosts("scale-in-warm-"+sh.name, sh.total())
}

// measureProbed repeats the burst until the probe has made enough calls of each kind. All shapes together must make
// probeCalls calls, and each shape makes an equal part.
func measureProbed(t *testing.T, sh shape, p *probe) {
	s := newStack(t, sh, false)
	before := p.least()
	stop := p.run(s)
	for p.least()-before < probeCalls/len(strings.Split(allShapes, ",")) {
		s.scaleOut()
		s.scaleIn()
		s.settle()
	}
	stop()
}

func bench(name string, value float64, unit string, ratio float64, against string) {
	fmt.Printf("BENCH %s %.2f %s %.2f %s\n", name, value, unit, ratio, against)
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}
