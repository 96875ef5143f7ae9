package chaos

import (
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// model holds the states that CA may assume. It derives them from the answers to CA's calls, and from the listings
// that CA has read. A listing that contradicts the model is a violation.
type model struct {
	mu         sync.Mutex
	began      time.Time
	timeline   io.Writer
	violations []string
	groups     map[string]*groupModel
	hours      bool      // simulated hours pass, so a failed instance may be removed without a call (invariant I3)
	upAt       time.Time // last start of Temporal
	ups        int
	counts     map[string]int // numbers of actions for the report
}

type groupModel struct {
	id        string
	max       int // the highest max
	least     int // the lowest max, for a config that changes
	epoch     string
	seq       int64
	target    int
	instances map[string]*instance
	order     []string // names, in the order in which they were first seen

	ends, epochs int       // how often the group's workflow was ended, and how often it began a new epoch
	endedAt      time.Time // time of the last end

	grown, shrunk int    // units answered with OK and not yet seen
	may           int    // units of an earlier epoch that may still appear
	lost          []lost // mutations with an unknown outcome
}

// lost is a mutation whose answer was lost.
type lost struct {
	op
	until time.Time // after this time the mutation cannot run
}

type instance struct {
	listed, counts, running, failed bool
	released                        bool // DeleteNodes was answered with OK
	maybe                           bool // DeleteNodes was called, and its answer was lost
	touched                         bool // the monkey has deleted its objects, so the instance may be lost
	// The field away reports that the group has begun a new epoch without the instance. The group adopts the instance
	// when the instance's driver reports.
	away bool
	back bool // the group has adopted the instance
}

// op is one mutation, and the server that received it.
type op struct {
	group, kind string
	delta       int
	names       []string
	room        bool // as far as the model knows, the mutation is within the group's limits
	epoch       string
	server      int
	life, ups   int
}

// listing is the state of one group that one replica lists at one moment.
type listing struct {
	group  string
	epoch  string
	seq    int64
	target int
	closed bool // its max equals its target, so the replica may be serving its last data about an unreadable group
	list   []listed
}

type listed struct {
	name            string
	counts, running bool
	failed          bool
}

func newModel(groups map[string]int, timeline io.Writer) *model {
	m := &model{began: time.Now(), upAt: time.Now(), timeline: timeline, groups: map[string]*groupModel{},
		counts: map[string]int{}}
	for id, most := range groups {
		m.groups[id] = &groupModel{id: id, max: most, least: most, instances: map[string]*instance{}}
	}
	return m
}

func (m *model) note(who, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.write(who, format, args...)
	if who == "monkey" {
		m.counts["monkey"]++
	}
}

func (m *model) write(who, format string, args ...any) {
	now := time.Now()
	fmt.Fprintf(m.timeline, "%s %7.3f %-7s %s\n", now.UTC().Format("15:04:05.000"), now.Sub(m.began).Seconds(), who,
		fmt.Sprintf(format, args...))
}

func (m *model) violate(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken(format, args...)
}

func (m *model) broken(format string, args ...any) {
	v := fmt.Sprintf("%7.3f %s", time.Since(m.began).Seconds(), fmt.Sprintf(format, args...))
	m.write("JUDGE", "VIOLATION %s", v)
	if len(m.violations) < 20 {
		m.violations = append(m.violations, v)
	}
}

func (m *model) verdict() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.violations)
}

func (m *model) temporalUp() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.upAt, m.ups = time.Now(), m.ups+1
}

// ending records that the monkey ends the group's workflow. Instances whose creation has not begun may be gone
// afterwards.
func (m *model) ending(group string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.groups[group].ends++
	m.groups[group].endedAt = time.Now()
}

// forgets reports whether the group of a scale-out may have forgotten the scale-out.
func (m *model) forgets(workflow string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, g := range m.groups {
		if g.ends > 0 && strings.HasPrefix(workflow, workflows.ScaleOutID(id+"-")) {
			return true
		}
	}
	return false
}

// wentBack reports whether the monkey may have reset the group and no worker has run the group since. The published
// state is then old, and a replica without newer data cannot detect this.
func (g *groupModel) wentBack() bool { return g.ends > g.epochs && time.Since(g.endedAt) < time.Minute }

// victim returns the name of a running instance whose objects the monkey may delete, or "".
func (m *model) victim(n int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, id := range []string{"red", "blue"} {
		g := m.groups[id]
		touched := slices.ContainsFunc(g.order,
			func(name string) bool { return g.instances[name].listed && g.instances[name].touched })
		for _, name := range g.order {
			if i := g.instances[name]; !touched && i.listed && i.counts && i.running {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[n%len(names)]
}

func (m *model) touch(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, g := range m.groups {
		if i := g.instances[name]; i != nil {
			i.touched = true
		}
	}
}

// listed returns the name of an instance that is being created. If leaving is true, it returns the name of an
// instance that is being released. It returns "" if no such instance exists.
func (m *model) listed(n int, leaving bool) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for _, id := range []string{"red", "blue"} {
		g := m.groups[id]
		for _, name := range g.order {
			if i := g.instances[name]; i.listed && !i.running && !i.failed && i.counts != leaving || i.listed && leaving &&
				i.running && !i.counts {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[n%len(names)]
}

// did records the outcome of a mutation, which is OK or unknown. A refused mutation changes nothing.
func (m *model) did(o op, known bool, deadline time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.groups[o.group]
	if !known {
		g.lost = append(g.lost, lost{o, deadline.Add(12 * time.Second)})
	}
	switch {
	case o.kind == "delete":
		for _, name := range o.names {
			i := g.instances[name]
			i.released, i.maybe = i.released || known, i.maybe || !known
		}
	case !known:
	case o.epoch != g.epoch:
		g.may += o.delta
	case o.kind == "grow":
		g.grown += o.delta
	default:
		g.shrunk += o.delta
	}
}

// see checks a replica's listing against the model, after a successful Refresh or after an answered mutation. settled
// reports whether the replica knows the outcomes of the mutations whose answers were lost.
func (m *model) see(v listing, server, life int, settled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.groups[v.group]
	bad := func(format string, args ...any) {
		m.broken("server%d group %s %s/%d: %s", server, g.id, v.epoch, v.seq, fmt.Sprintf(format, args...))
	}
	before := len(m.violations)
	m.count(g, v, bad)
	switch {
	case g.epoch != "" && (v.epoch < g.epoch || v.epoch == g.epoch && v.seq < g.seq) && (v.closed || g.wentBack()):
		return // the other replica has read more, before the group became unreadable or was reset
	case g.epoch == "":
		g.epoch = v.epoch
	case v.epoch != g.epoch:
		m.reborn(g, v, bad)
	case v.seq < g.seq:
		bad("I6: its state goes back from %d", g.seq)
	}
	m.compare(g, v, bad)
	g.seq, g.target = v.seq, v.target
	g.lost = slices.DeleteFunc(g.lost, func(l lost) bool {
		return settled && l.server == server && l.life == life && l.ups == m.ups ||
			time.Now().After(l.until) && time.Since(m.upAt) > 12*time.Second
	})
	if len(m.violations) > before {
		m.write("JUDGE", "seen: %+v", v)
	}
}

// count checks invariant I1 and the form of the ids. It uses no earlier listing.
func (m *model) count(g *groupModel, v listing, bad func(string, ...any)) {
	n, most := 0, g.max
	names := map[string]bool{}
	for _, i := range v.list {
		if i.counts {
			n++
		}
		// An adopted instance may exceed max, because CA may have grown the group before the adoption.
		if known := g.instances[i.name]; known != nil && i.counts && (known.away || known.back) {
			most++
		}
		if names[i.name] {
			bad("I2: %s is listed twice", i.name)
		}
		names[i.name] = true
	}
	if n != v.target {
		bad("I1: target size %d, but %d instances count", v.target, n)
	}
	if v.target > most {
		bad("I1: target size %d is above max %d", v.target, most)
	}
}

// reborn begins a new epoch of the group. Instances that were Pending are gone, and unfinished instances may have any
// state.
func (m *model) reborn(g *groupModel, v listing, bad func(string, ...any)) {
	if v.epoch < g.epoch {
		bad("I6: its epoch goes back from %s", g.epoch)
	}
	if g.epochs++; g.epochs > g.ends {
		bad("it has begun anew, and nobody has ended it")
	}
	m.write("judge", "group %s is born again: %s after %s", g.id, v.epoch, g.epoch)
	g.epoch = v.epoch
	g.may += g.grown
	for _, l := range g.lost {
		if l.kind == "grow" {
			g.may += l.delta
		}
	}
	g.grown, g.shrunk, g.lost = 0, 0, nil
	in := map[string]listed{}
	for _, i := range v.list {
		in[i.name] = i
	}
	for name, i := range g.instances {
		now, ok := in[name]
		if i.listed && i.counts && i.running && !i.released && !i.maybe && !i.touched && !now.counts {
			bad("what recovery is for: %s was running, its objects are there, and it does not count any more", name)
		}
		i.away = i.away || i.listed && !ok
		i.listed = ok
		i.counts, i.running, i.failed = now.counts, now.running, now.failed
		if ok && now.counts {
			i.released, i.maybe = false, false
		}
	}
}

// compare checks the invariants between two listings of the same epoch of a group.
func (m *model) compare(g *groupModel, v listing, bad func(string, ...any)) {
	names := map[string]bool{}
	fresh, left := 0, 0
	sure := true
	for _, now := range v.list {
		names[now.name] = true
		i := g.instances[now.name]
		if i == nil {
			fresh++
			g.instances[now.name] = &instance{listed: true, counts: now.counts, running: now.running, failed: now.failed}
			g.order = append(g.order, now.name)
			if !now.counts {
				left++
			}
			continue
		}
		switch {
		case !i.listed && i.away:
			i.away, i.back, i.released, i.maybe = false, true, false, false
		case !i.listed:
			bad("I2: %s was gone and is back", now.name)
		case now.counts && i.released:
			bad("I4: %s counts again after DeleteNodes was answered with OK", now.name)
		case now.counts && !i.counts:
			bad("I4: %s counts again", now.name)
		case now.counts && i.failed && !now.failed:
			bad("I3: %s has lost its error", now.name)
		case now.counts && i.running && !now.running && !g.wentBack(): // after a reset the driver reports again
			bad("%s was running and is not any more", now.name)
		case i.counts && !now.counts && !i.released:
			switch {
			case i.maybe:
				sure = false
			case i.touched && i.running:
			case i.running:
				bad("I4: %s was running and is being removed, but CA has not released it", now.name)
			default:
				left++
			}
		}
		i.listed, i.counts, i.running, i.failed = true, now.counts, now.running, now.failed
	}
	for _, name := range g.order {
		i := g.instances[name]
		if !i.listed || names[name] {
			continue
		}
		switch {
		case !i.counts, i.released, i.touched && i.running:
		case i.maybe:
			sure = false
		case i.running, i.failed && g.shrunk == 0 && !m.hours:
			bad("I2, I3: %s no longer exists, and no operation released it", name)
		default:
			left++
		}
		i.listed, i.counts = false, false
	}
	m.explain(g, fresh, left, sure, bad)
}

// byLost gets the number of instances that no answered call explains. A growth whose outcome is unknown took effect
// completely or not at all. byLost explains as many of the instances as possible by such growths, and forgets these
// growths. It returns the number of instances without an explanation.
func (g *groupModel) byLost(extra int) int {
	best, sum, most := 0, 0, 0
	for set := range 1 << min(len(g.lost), 12) {
		units, ok := 0, true
		for n, l := range g.lost {
			if set&(1<<n) != 0 {
				units, ok = units+l.delta, ok && l.kind == "grow"
			}
		}
		if size := bits.OnesCount(uint(set)); ok && units <= extra && (units > sum || units == sum && size < most) {
			best, sum, most = set, units, size
		}
	}
	n := -1
	g.lost = slices.DeleteFunc(g.lost, func(lost) bool { n++; return best&(1<<n) != 0 })
	return extra - sum
}

// explain checks the number of new and removed instances against CA's calls.
func (m *model) explain(g *groupModel, fresh, left int, sure bool, bad func(string, ...any)) {
	extra := fresh - g.grown
	if extra < 0 {
		bad("I2, I7: %d of %d units answered with OK are not listed", -extra, g.grown)
	}
	g.grown = 0
	extra = g.byLost(extra)
	if extra > 0 {
		use := min(extra, g.may)
		extra, g.may = extra-use, g.may-use
	}
	if extra > 0 {
		bad("I4, I7: %d instances exist that CA has not requested", extra)
	}
	if g.shrunk > 0 && sure && left == 0 {
		bad("I4: DecreaseTargetSize was answered with OK, and nothing leaves")
	}
	allowed := g.shrunk
	for _, l := range g.lost {
		if l.kind == "shrink" {
			allowed += l.delta
		}
	}
	if left > allowed {
		bad("I4: %d instances are gone that CA has not released", left-allowed)
	}
	for n := 0; left > g.shrunk && n < len(g.lost); n++ {
		if g.lost[n].kind == "shrink" {
			left -= g.lost[n].delta
			g.lost = slices.Delete(g.lost, n, n+1)
			n--
		}
	}
	g.shrunk = 0
}

func (m *model) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := []string{"monkey", "loops", "refresh failed", "grow", "shrink", "delete", "unknown", "no", "looks"}
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%s=%d ", strings.ReplaceAll(k, " ", "-"), m.counts[k])
	}
	n, epochs := 0, 0
	for _, g := range m.groups {
		n += len(g.order)
		epochs += g.epochs
	}
	fmt.Fprintf(&b, "instances=%d rebirths=%d", n, epochs)
	return b.String()
}

func (m *model) add(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[what]++
}
