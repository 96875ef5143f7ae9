package fleet_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
)

var (
	exploreSeed  = flag.Uint64("seed", 1, "seed of the explorer's first world; the others count on from it")
	exploreSteps = flag.Int("steps", 100_000, "how many steps the explorer takes over all worlds")
)

// worldSteps is the number of steps in one world before its final rest, in which no more faults occur.
const worldSteps = 1000

// These are the modes of a world, which decide its faults. Each mode includes the faults of the modes before it.
const (
	modeLoad = iota // messages and results are late and never lost
	modeFaults
	modePeople
	modeTerminate
	modeRestore
	modes
)

// TestExplorer runs every Step function of this package in a random order against one model of the world. Messages
// are lost before they are sent, or arrive twice and late. Results are lost, entities continue as new, and nodes and
// providers vanish. People cancel, terminate, reset and restore workflows. Every world ends with a rest, without
// faults. A failed world prints its seed: run the test again with -run Explorer -seed N -steps 1 -v.
func TestExplorer(t *testing.T) {
	counts := map[string]int{}
	for n := 0; n*worldSteps < *exploreSteps; n++ {
		x := newExplorer(t, *exploreSeed+uint64(n), counts)
		x.explore()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d steps from seed %d: %v", *exploreSteps, *exploreSeed, counts)
	if *exploreSteps < 100_000 {
		return
	}
	for _, what := range disturbances {
		if counts[what] < 5 {
			t.Errorf("%d %s in all worlds: the explorer does not reach that any more", counts[what], what)
		}
	}
}

// disturbances lists the disturbances that the test counts. Each disturbance occurs only in some worlds.
var disturbances = []string{
	"lost tries", "lost results", "lost answers", "calls sent twice", "late deliveries", "deliveries too late",
	"continue-as-new", "servers restarted", "cancelled", "terminated", "reset", "failing tasks", "stranded", "hung",
	"restored",
}

type explorer struct {
	*testing.T
	temporal
	seed uint64
	rng  *rand.Rand
	now  time.Time
	mode int
	calm bool
	// restored reports that Temporal was restored from an old copy, so that histories were reverted.
	restored bool
	saved    *temporal
	notes    []string
	counts   map[string]int

	clusters []*cluster
	objects  []*object
	servers  []*server
	round    roundUnderWay

	positions map[string]fleet.Position // by group: the position that it saved outside of Temporal
	forgotten map[string]string         // by instance that was released before a restore: its group's epoch
	carried   map[string]bool           // the instances whose id was on a Node

	names, released, harmed, excused, operations map[string]bool
	calledOff                                    map[string]bool // holds that a cancelled choice requested
	over                                         map[string]over // by name: when the group released the instance
	undone                                       map[string]int  // number of undos since the final rest began
}

// over is the time at which a group released an instance, and the instance's state at this time.
type over struct {
	epoch string
	at    time.Time
}

// roundUnderWay is the running round. It holds the states of the entities that the round has read, and the groups
// that it could not read.
type roundUnderWay struct {
	id        fleet.RoundID
	next      time.Time
	groups    []fleet.Snapshot
	providers []publishedProvider
	unread    map[string]bool
	pending   bool
}

// publishedProvider is the last published state of the entity of cluster n.
type publishedProvider struct {
	n int
	fleet.ProviderSnapshot
}

func lendable(n int) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(2*n), resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("1Ti"),
		corev1.ResourcePods:   resource.MustParse("10k"),
	}
}

func newExplorer(t *testing.T, seed uint64, counts map[string]int) *explorer {
	x := &explorer{
		T: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 7)), now: t0, counts: counts, mode: int(seed % modes),
		temporal: temporal{runs: map[string]*run{}},
		names:    map[string]bool{}, released: map[string]bool{}, harmed: map[string]bool{}, excused: map[string]bool{},
		operations: map[string]bool{}, undone: map[string]int{}, calledOff: map[string]bool{},
		over: map[string]over{}, positions: map[string]fleet.Position{}, forgotten: map[string]string{},
		carried: map[string]bool{},
	}
	for n, id := range []string{"milan", "turin", "rome"} {
		x.clusters = append(x.clusters, &cluster{id: id, nodes: n + 1, price: 10 + n})
	}
	if x.mode == modeLoad { // the world has enough capacity, so no hold is refused
		x.clusters[0].nodes = 20
	}
	for _, id := range []string{"edge", "gpu"} {
		s := spec()
		s.ID = id
		x.servers = append(x.servers, &server{spec: s})
	}
	return x
}

func (x *explorer) explore() {
	defer func() {
		if p := recover(); p != nil {
			x.violates("panic: %v", p)
			panic(p)
		}
	}()
	x.hurry()
	for n := 0; n < worldSteps && !x.Failed(); n++ {
		x.step()
		if n%100 == 50 && x.mode >= modeRestore && x.chance(60) {
			x.backUp()
		}
	}
	x.rest()
}

func (x *explorer) chance(percent int) bool { return x.rng.IntN(100) < percent }

// trouble returns true with the given chance when a fault may occur. It returns false during the final rest.
func (x *explorer) trouble(percent int) bool {
	if x.calm || x.mode == modeLoad && percent == 3 {
		return false
	}
	return x.chance(percent)
}

func (x *explorer) upTo(d time.Duration) time.Duration { return time.Duration(x.rng.Int64N(int64(d))) }

func (x *explorer) step() {
	switch n := x.rng.IntN(100); {
	case n < 43:
		_ = x.someAct() || x.someTask() || x.idle()
	case n < 83:
		_ = x.someTask() || x.someAct() || x.idle()
	case n < 90:
		x.pass(x.upTo(5 * time.Second))
	case n < 92:
		x.pass(x.upTo(2 * time.Minute))
	case n < 94:
		s := x.servers[x.rng.IntN(2)]
		if x.chance(20) {
			x.changeStandby(s)
		}
		x.refresh(s)
	case n < 96:
		x.ca(x.servers[x.rng.IntN(2)])
	case n < 98:
		x.compare()
	default:
		if x.mode > modeLoad {
			x.disturb()
		}
	}
}

// idle lets some seconds pass when no task and no activity can run.
func (x *explorer) idle() bool {
	x.pass(x.upTo(10 * time.Second))
	return true
}

// someAct executes one activity, and someTask one workflow task. Each returns false when nothing can run.
func (x *explorer) someAct() bool {
	var ready []*act
	for _, a := range x.acts {
		if !a.notBefore.After(x.now) {
			ready = append(ready, a)
		}
	}
	if len(ready) == 0 {
		return false
	}
	x.execute(ready[x.rng.IntN(len(ready))])
	return true
}

func (x *explorer) someTask() bool {
	var ready []*run
	for _, r := range x.active {
		if r.failing.IsZero() && (len(r.inbox) > 0 || !r.timer.IsZero() && !r.timer.After(x.now)) {
			ready = append(ready, r)
		}
	}
	if len(ready) == 0 {
		return false
	}
	r := ready[x.rng.IntN(len(ready))]
	n := len(r.inbox)
	if n > 1 && !x.calm {
		n = 1 + x.rng.IntN(n)
	}
	in := r.inbox[:n:n]
	r.inbox = slices.Clone(r.inbox[n:])
	r.actor.task(x, r, in)
	if n > 0 || r.timer.IsZero() || r.timer.After(x.now) || r.status != running {
		r.spins = 0
	} else if r.spins++; r.spins > 3 {
		x.violates("%s has a timer that is due immediately, again and again", r.id)
	}
	return true
}

func (x *explorer) pass(d time.Duration) { x.now = x.now.Add(d) }

// compare runs one half of a round. The first half reads the published states of the entities, and the second half
// lists the objects later. Another leader may take over at any time, with a higher term.
func (x *explorer) compare() {
	c := &x.round
	switch {
	case !c.pending && !x.now.Before(c.next):
		if c.id.Number++; x.trouble(3) {
			c.id.Number++ // the earlier round has failed
		} else if x.trouble(10) {
			c.id = fleet.RoundID{Term: c.id.Term + 1, Number: 1}
		}
		x.readBooked()
		c.pending, c.next = true, x.now.Add(time.Minute)
	case c.pending:
		c.pending = false
		x.compareBooked()
	}
}

// readBooked reads the published states of the entities. When an entity does not answer, this round judges neither the
// entity nor its objects.
func (x *explorer) readBooked() {
	c := &x.round
	c.groups, c.providers, c.unread = nil, nil, map[string]bool{}
	for _, s := range x.servers {
		r := x.runs["nodegroup/"+s.spec.ID]
		if x.trouble(8) {
			c.unread[s.spec.ID] = true
		} else if r != nil && r.status == running && r.memo != nil {
			c.groups = append(c.groups, r.memo.(fleet.Snapshot))
		}
	}
	for n, p := range x.clusters {
		if r := x.runs["provider/"+p.id]; r != nil && r.status == running && r.memo != nil && !x.trouble(8) {
			c.providers = append(c.providers, publishedProvider{n, r.memo.(fleet.ProviderSnapshot)})
		}
	}
}

func (x *explorer) compareBooked() {
	c := &x.round
	found, peers := x.list(func(fleet.Attempt) bool { return true }), []fleet.Provider(nil)
	var ids []string
	for _, p := range x.clusters {
		if p.peered {
			peers = append(peers, fleet.Provider{ID: p.id})
			ids = append(ids, p.id)
		}
	}
	for _, f := range found {
		ids = append(ids, f.Attempt.Provider.ID)
	}
	for _, id := range ids {
		x.start("provider/"+id, true, x.newProvider(id))
	}
	for _, g := range c.groups {
		d := comparison.GroupDiffers(g, found)
		d.Round, d.Epoch, d.Revision = c.id, g.Epoch, g.Revision
		if saved := x.positions[g.Group]; g.Position().Behind(saved) {
			d.Seen = saved
		}
		x.signal("nodegroup/"+g.Group, d)
	}
	for _, p := range c.providers {
		unread := func(group string) bool { return c.unread[group] }
		d := comparison.ProviderDiffers(p.ProviderSnapshot, c.groups, unread, found, peers)
		d.Round, d.Revision = c.id, p.Revision
		// Each network is broken during five of fifteen rounds.
		broken := !x.calm && (int(c.id.Number)/5+p.n)%3 == 0
		if p.Standing.Network != broken {
			d.Standing = &fleet.Standing{Network: broken, Message: "broken"}
		}
		x.signal("provider/"+p.ID, d)
	}
}

// rest runs the world without faults for hours and then checks its state.
func (x *explorer) rest() {
	if x.mode >= modePeople {
		x.unpeer()
	}
	x.note("no more faults")
	x.calm = true
	for _, c := range x.clusters {
		c.down, c.foreign, c.refusing = false, 0, false
	}
	for _, r := range x.active {
		r.failing = time.Time{}
	}
	end := x.now.Add(150 * time.Minute)
	for resume := 0; x.now.Before(end) && !x.Failed(); resume++ {
		// In the other modes no operator is needed (invariant I12). The operator continues for three minutes, because a
		// driver that was cancelled at the end of the world may need more than a minute to report this.
		if resume < 10 && x.mode >= modePeople {
			x.resume()
		}
		for n := 0; x.someAct() || x.someTask(); n++ {
			if n > 20_000 {
				x.violates("the world does not come to rest")
				return
			}
		}
		x.compare()
		x.compare()
		for _, s := range x.servers {
			x.refresh(s)
		}
		x.pass(20 * time.Second)
	}
	if !x.Failed() {
		x.endForgotten()
		x.checkRest()
	}
}

// endForgotten ends a day-old scale-out that waits for its provider, when both its group and the provider have
// forgotten it. Temporal's timeout does the same.
func (x *explorer) endForgotten() {
	for _, r := range slices.Clone(x.active) {
		d, drives := r.actor.(*driverRun)
		if !drives || d.stopped || d.d.Instance.Phase != fleet.Peering {
			continue
		}
		key := d.d.Instance.AttemptRef().ObjectName()
		held := slices.ContainsFunc(x.clusters, func(c *cluster) bool {
			p := x.runs["provider/"+c.id]
			return p != nil && p.status == running && contains(p.actor.(*providerRun).p.LiveHolds(), key)
		})
		if l := x.group(d.d.Spec.ID); !held && l != nil && l.Find(d.d.Instance.Name) == nil {
			x.end(r, failed)
		}
	}
}

// resume is the operator at the end of a world: it resumes groups and providers, and retries stuck instances.
func (x *explorer) resume() {
	x.signalAll()
	for _, c := range x.clusters {
		x.signal("provider/"+c.id, cordon(false))
	}
	for _, s := range x.servers {
		x.operate(s, call{fleet.Pause, x.request(s, time.Second)})
	}
}

func (x *explorer) note(format string, args ...any) {
	x.notes = append(x.notes, x.now.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (x *explorer) count(what string) { x.counts[what]++ }

func (x *explorer) violates(format string, args ...any) {
	x.Helper()
	if x.Failed() {
		return
	}
	last := x.notes[max(0, len(x.notes)-*exploreNotes):]
	x.Errorf("seed %d, mode %d, %s: %s\n%s", x.seed, x.mode, x.now.Format("15:04:05"), fmt.Sprintf(format, args...),
		strings.Join(last, "\n"))
}

var exploreNotes = flag.Int("notes", 40, "how many of the last events a failing world shows")

func sortedIDs(runs map[string]*run) []string { return slices.Sorted(maps.Keys(runs)) }
