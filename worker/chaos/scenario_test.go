package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/test/simworld"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// scenario is a run in which the test sets the sizes that CA wants. CA's loop runs in the background, and a guard
// watches all Ready nodes.
type scenario struct {
	*run
	name  string
	ctx   context.Context
	guard *guard
	sick  map[string]bool // providers on which the product may undo attempts
	stop  func()          // ends the loop of CA and the loop of the guard

	unknown map[string]bool // attempts that the product may undo on any provider, see mayUndo

	mu   sync.Mutex
	want map[string]int  // sizes below which CA grows a group
	back map[string]bool // instances that CA wants to release
}

// stepLimit bounds one step of a scenario, and is long enough for a busy machine. scenarioLimit bounds a whole
// scenario.
const (
	stepLimit     = 3 * time.Minute
	scenarioLimit = 15 * time.Minute
)

// class is a group. budgets contains only the budgets that differ from the defaults, such as "join: 30s".
type class struct{ id, budgets string }

// wide returns groups whose providers have capacity for all instances. lenders are the providers of all groups. A
// group uses only those providers whose label has the group's id.
func wide(workers int, delays sim.Delays, groups []class, lenders ...simworld.Provider) layout {
	l := layout{most: map[string]int{}, workers: workers, delays: delays, flags: []string{"--slots", "50"},
		providers: lenders}
	var text strings.Builder
	text.WriteString(`defaults: {shape: {cpu: "1", memory: 1Gi, pods: "110"}}` + "\nnodeGroups:\n")
	for _, g := range groups {
		l.most[g.id] = 200
		fmt.Fprintf(&text, "- {id: %s, min: 0, max: 200, selector: {matchLabels: {for: %s}}, budgets: {%s}}\n", g.id, g.id,
			g.budgets)
	}
	l.groups = text.String()
	return l
}

// lender returns a provider with capacity for this number of a group's nodes.
func lender(name, group string, price float64, room int) simworld.Provider {
	return simworld.Provider{Name: name, Offer: fmt.Sprintf("labels: {for: %s}, price: %g, lingerSeconds: 0, lendable: "+
		"{cpu: %d, memory: %dGi, pods: %d}", group, price, room, room, 110*room)}
}

// standard returns one group with three equal providers. Together they have capacity for twice the largest burst.
func standard(workers int) layout {
	return wide(workers, work, []class{{id: "std"}}, lender("p1", "std", 1, 100), lender("p2", "std", 1, 100),
		lender("p3", "std", 1, 100))
}

func newScenario(t *testing.T, l layout) *scenario {
	t.Helper()
	with := drawn()
	ctx, cancel := context.WithTimeout(context.Background(), scenarioLimit)
	t.Cleanup(cancel)
	t.Logf("seed %d, to be had again with: go test ./worker/chaos -run %s -v -overload -chaos-seed %d", with, t.Name(),
		with)
	o := &scenario{run: newRun(ctx, t, with, l), name: t.Name(), ctx: ctx, sick: map[string]bool{},
		unknown: map[string]bool{}, want: map[string]int{}, back: map[string]bool{}, guard: newGuard()}
	looping, stop := context.WithCancel(ctx)
	var both sync.WaitGroup
	both.Go(func() {
		for wait.For(looping, 500*time.Millisecond) {
			o.d.loop(ctx, o.decide)
		}
	})
	both.Go(func() {
		for wait.For(looping, 200*time.Millisecond) {
			o.s.healthy(o.m)
			o.guard.watch(o.s.world.World, o.m)
		}
	})
	o.stop = func() { stop(); both.Wait() }
	t.Cleanup(o.stop)
	return o
}

// decide returns CA's next mutations. It grows each group to the wanted size and deletes failed instances. It
// releases each instance in o.back, and repeats the release as long as the instance counts.
func (o *scenario) decide(seen map[string]listing) []op {
	o.mu.Lock()
	defer o.mu.Unlock()
	ops := asked(seen, func(i listed) bool { return i.failed })
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		var again []string
		for _, i := range seen[id].list {
			if i.counts && !i.failed && o.back[i.name] {
				again = append(again, i.name)
			}
		}
		for names := range slices.Chunk(again, 50) {
			ops = append(ops, op{group: id, kind: "delete", names: names})
		}
		if delta := o.want[id] - seen[id].target + len(again); delta > 0 {
			ops = append(ops, op{group: id, kind: "grow", delta: delta, room: o.d.m.room(id, delta)})
		}
	}
	return ops
}

// grow makes CA want n more instances of the group.
func (o *scenario) grow(group string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.m.note("test", "wants %d more of %s", n, group)
	o.want[group] += n
}

// After a call of content, CA no longer grows the group.
func (o *scenario) content(group string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.want[group] = 0
}

// release makes CA release these instances of the group.
func (o *scenario) release(group string, instances []string) {
	o.guard.give(instances...)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.m.note("test", "asks %d of %s back", len(instances), group)
	for _, name := range instances {
		o.back[name] = true
	}
	o.want[group] = max(0, o.want[group]-len(instances))
}

// instances returns the group's instances that are Ready and that CA does not want to release.
func (o *scenario) instances(group string) []string { return o.guard.instances(o.world(), group) }

// occupy puts a pod on the node of each of these instances. A protected pod delays the drain of its node.
func (o *scenario) occupy(instances []string, protected bool) {
	o.t.Helper()
	require.NoError(o.t, o.guard.occupy(o.ctx, o.s.world.World, instances, protected))
}

// breaks sets a provider's faults. From then on the product may undo attempts on this provider.
func (o *scenario) breaks(provider string, knobs sim.Knobs) {
	o.t.Helper()
	o.sick[provider] = true
	o.m.note("test", "%s: %+v", provider, knobs)
	require.NoError(o.t, o.s.world.SetKnobs(o.ctx, provider, knobs))
}

// heals removes a provider's faults.
func (o *scenario) heals(provider string) { o.t.Helper(); o.breaks(provider, sim.Knobs{}) }

func (o *scenario) world() *sim.State {
	o.t.Helper()
	w, err := o.s.world.Snapshot()
	require.NoError(o.t, err)
	return w
}

// ready waits until at least n nodes of the group are Ready.
func (o *scenario) ready(group string, n int) {
	o.t.Helper()
	o.until(fmt.Sprintf("%d of %s are Ready", n, group), func(w *sim.State) error {
		if is := len(o.guard.instances(w, group)); is < n {
			return fmt.Errorf("%d are", is)
		}
		return nil
	})
}

// The method `until` waits until the world meets the condition. A violation during the wait ends the test.
func (o *scenario) until(what string, check func(*sim.State) error) {
	o.t.Helper()
	err := until(o.ctx, stepLimit, func() error {
		if bad := o.m.verdict(); len(bad) > 0 {
			return nil
		}
		return check(o.world())
	})
	o.m.note("test", "%s: %v", what, err)
	if bad := o.m.verdict(); err != nil || len(bad) > 0 {
		o.t.Fatalf("seed %d: %s: %v\n%s\nlast of the timeline:\n%s\nremains: %s", o.seed, what, err, strings.Join(bad, "\n"),
			tail(o.timeline, 40), o.dir)
	}
}

// pause lets the run continue for the duration.
func (o *scenario) pause(d time.Duration) {
	o.t.Helper()
	require.True(o.t, wait.For(o.ctx, d), "the scenario's time is up")
}

// finish waits until nothing changes any more, and then makes all checks. It does not retry cancelled steps.
func (o *scenario) finish() {
	o.t.Helper()
	o.stop()
	o.quiet(o.ctx, false)
	o.guard.watch(o.s.world.World, o.m)
	o.undone()
	o.t.Logf("%s: %s", o.name, o.guard)
	o.end(o.ctx, "OVERLOAD "+strings.TrimPrefix(o.name, "TestOverload/"))
}
