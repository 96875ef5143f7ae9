package chaos

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend/sim"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows"
)

// monkey causes faults. It repairs each fault a little later.
type monkey struct {
	s       *stack
	rng     *rand.Rand
	m       *model
	repairs []repair
	spared  []*process // processes that are not killed
	// versioned excludes resets. With versioned workers, Temporal 1.29.1 sometimes never delivers the task of a run that
	// was reset.
	versioned bool
	// gentle excludes faults of Temporal and of the workflows, because the product detects the loss of a workflow
	// only after minutes.
	gentle bool
}

type repair struct {
	what string
	key  string // at most one fault per key exists at a time
	due  time.Time
	do   func(context.Context)
}

// act is one action of the monkey. It returns false when it found no target.
type act struct {
	name   string
	weight int
	rough  bool // not for a gentle monkey
	do     func(ctx context.Context) (what string, ok bool)
}

// run causes faults until the context ends, and then repairs the remaining faults. The repairs use the context
// `after`.
func (k *monkey) run(ctx, after context.Context) {
	acts := slices.DeleteFunc(k.acts(), func(a act) bool { return a.rough && k.gentle })
	total := 0
	for _, a := range acts {
		total += a.weight
	}
	next := time.Now()
	for {
		due := next
		for _, m := range k.repairs {
			if m.due.Before(due) {
				due = m.due
			}
		}
		if !wait.For(ctx, time.Until(due)) {
			break
		}
		k.repair(after, time.Now())
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(k.between(300*time.Millisecond, 1500*time.Millisecond))
		pick := k.rng.IntN(total)
		for _, a := range acts {
			if pick -= a.weight; pick < 0 {
				if what, ok := a.do(ctx); ok {
					k.m.note("monkey", "%s %s", a.name, what)
					k.m.add(a.name)
				}
				break
			}
		}
	}
	k.repair(after, time.Now().Add(time.Hour))
}

func (k *monkey) repair(ctx context.Context, now time.Time) {
	k.repairs = slices.DeleteFunc(k.repairs, func(m repair) bool {
		if now.Before(m.due) {
			return false
		}
		m.do(ctx)
		k.m.note("monkey", "repairs %s", m.what)
		return true
	})
}

func (k *monkey) broken(key string) bool {
	return slices.ContainsFunc(k.repairs, func(m repair) bool { return m.key == key })
}

func (k *monkey) later(key, what string, d time.Duration, do func(context.Context)) {
	k.repairs = append(k.repairs, repair{what, key, time.Now().Add(d), do})
}

func (k *monkey) between(low, high time.Duration) time.Duration {
	return low + time.Duration(k.rng.Int64N(int64(high-low)))
}

func (k *monkey) acts() []act {
	return []act{
		{"kills", 12, false, func(ctx context.Context) (string, bool) {
			return k.kill(k.s.workers[k.rng.IntN(2)],
				3*time.Second)
		}},
		{"kills", 8, false, func(ctx context.Context) (string, bool) {
			return k.kill(k.s.servers[k.rng.IntN(2)],
				3*time.Second)
		}},
		{"kills", 3, true, func(ctx context.Context) (string, bool) { return k.kill(k.s.temporal, 3*time.Second) }},
		{"stops", 7, true, func(context.Context) (string, bool) { return k.stop(k.s.workers[k.rng.IntN(2)]) }},
		{"stops", 2, true, func(context.Context) (string, bool) { return k.stop(k.s.servers[k.rng.IntN(2)]) }},
		{"strands", 3, true, k.strand},
		{"turns", 14, false, k.knob},
		{"loads", 6, false, k.load},
		{"deletes", 9, true, k.delete},
		{"cancels", 12, true, func(ctx context.Context) (string, bool) {
			return k.end(ctx, []string{"peering", "peering", "unpeering", "scale-out", "scale-out", "scale-in", "scale-in",
				"provider", "nodegroup"}, func(id string) error {
				return k.s.api.CancelWorkflow(ctx, id, "")
			})
		}},
		{"terminates", 8, true, func(ctx context.Context) (string, bool) {
			return k.end(ctx, []string{"nodegroup", "provider", "scale-out", "scale-out", "scale-in"}, func(id string) error {
				return k.s.api.TerminateWorkflow(ctx, id, "", "chaos")
			})
		}},
		{"resets", 6, true, func(ctx context.Context) (string, bool) {
			if k.versioned {
				return "", false
			}
			return k.end(ctx, []string{"nodegroup", "provider", "scale-out", "scale-in"},
				func(id string) error { return k.reset(ctx, id) })
		}},
	}
}

func (k *monkey) kill(p *process, most time.Duration) (string, bool) {
	wait := k.between(0, most)
	if k.broken(p.name) || slices.Contains(k.spared, p) {
		return "", false
	}
	p.kill()
	k.later(p.name, p.name, wait, func(context.Context) {
		if err := p.start(); err != nil {
			k.m.violate("start %s again: %v", p.name, err)
		}
		if p == k.s.temporal {
			k.m.temporalUp()
		}
	})
	return p.name, true
}

func (k *monkey) stop(p *process) (string, bool) {
	wait := k.between(500*time.Millisecond, 14*time.Second)
	if slices.Contains(k.s.servers, p) {
		wait /= 4
	}
	if k.broken(p.name) {
		return "", false
	}
	p.signal(syscall.SIGSTOP)
	k.later(p.name, p.name, wait, func(context.Context) { p.signal(syscall.SIGCONT) })
	return p.name, true
}

// strand stops all workers for 3 to 12 s. CA waits 5 s for an answer.
func (k *monkey) strand(context.Context) (string, bool) {
	wait := k.between(3*time.Second, 12*time.Second)
	for _, p := range k.s.workers {
		if k.broken(p.name) {
			return "", false
		}
	}
	for _, p := range k.s.workers {
		p.signal(syscall.SIGSTOP)
		k.later(p.name, p.name, wait, func(context.Context) { p.signal(syscall.SIGCONT) })
	}
	return "all workers", true
}

var (
	refusable = []backend.Stage{backend.StageTenant, backend.StageIdentity, backend.StageSliceAuth, backend.StageResources}
	hangable  = []backend.Stage{
		backend.StageNonce, backend.StageTenant, backend.StageReachable, backend.StageSliceAuth, backend.StageVirtualKubelet,
		backend.StageNode,
		backend.StageReady, backend.StageIdentityGone, backend.StageTenantGone,
	}
)

func (k *monkey) knob(ctx context.Context) (string, bool) {
	p, kind := k.s.providers[k.rng.IntN(len(k.s.providers))], k.rng.IntN(3)
	refuse, hang, wait := refusable[k.rng.IntN(len(refusable))], hangable[k.rng.IntN(len(hangable))],
		k.between(time.Second, 12*time.Second)
	if k.broken(p) {
		return "", false
	}
	knobs, what := sim.Knobs{Unreachable: true}, "unreachable"
	switch kind {
	case 0:
		knobs, what = sim.Knobs{Refuse: refuse, Message: "not today"}, "to refuse "+string(refuse)
	case 1:
		knobs, what = sim.Knobs{Hang: hang}, "to hang at "+string(hang)
	}
	if !k.edit(ctx, func(ctx context.Context) error { return k.s.world.SetKnobs(ctx, p, knobs) }) {
		return "", false
	}
	k.later(p, p, wait, func(ctx context.Context) {
		if err := until(ctx, 30*time.Second, func() error { return k.s.world.SetKnobs(ctx, p, sim.Knobs{}) }); err != nil {
			k.m.violate("repair %s: %v", p, err)
		}
	})
	return p + " " + what, true
}

// edit changes the world. It returns false if a stopped process holds the world's lock.
func (k *monkey) edit(ctx context.Context, do func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return do(ctx) == nil
}

// delete removes an object of a running instance. In each group it deletes the objects of one instance at a time:
// when several Ready instances are gone at the same time, a group waits five minutes before it counts them as lost.
func (k *monkey) delete(ctx context.Context) (string, bool) {
	kind, n := k.rng.IntN(3), k.rng.IntN(8)
	name := k.m.victim(n)
	w, err := k.s.world.Snapshot()
	if name == "" || err != nil {
		return "", false
	}
	for object, v := range w.Consumer.Virtuals {
		if v.Labels[backend.LabelInstance] != name || v.Annotations[backend.AnnotationStamp] == "" {
			continue
		}
		k.m.touch(name)
		what, do := "Node ", k.s.world.DeleteNode
		switch kind {
		case 1:
			what, do = "VirtualNode ", k.s.world.DeleteVirtualNode
		case 2:
			what, do = "slice ", k.s.world.DeleteSlice
		}
		return what + object, k.edit(ctx, func(ctx context.Context) error { return do(ctx, object) })
	}
	return "", false
}

// load puts a pod on a Node. The pod delays the drain of the Node, at most for the drain budget.
func (k *monkey) load(ctx context.Context) (string, bool) {
	n, protected := k.rng.IntN(8), k.rng.IntN(2) == 0
	w, err := k.s.world.Snapshot()
	if err != nil || len(w.Consumer.Nodes) == 0 {
		return "", false
	}
	names := slices.Sorted(maps.Keys(w.Consumer.Nodes))
	node := names[n%len(names)]
	return node, k.edit(ctx, func(ctx context.Context) error {
		return k.s.world.PutPod(ctx, node, sim.Pod{Name: "pod", Protected: protected})
	})
}

// end cancels or terminates a workflow of one of these kinds. A workflow that does not run is not an error.
func (k *monkey) end(ctx context.Context, kinds []string, do func(id string) error) (string, bool) {
	kind, n := kinds[k.rng.IntN(len(kinds))], k.rng.IntN(60)
	provider, group := k.s.providers[n%3], []string{"red", "blue"}[n%2]
	var id string
	switch kind {
	case "peering":
		id = workflows.PeeringID(provider)
	case "unpeering":
		id = workflows.UnpeeringID(provider)
	case "provider":
		id = workflows.ProviderID(provider)
	case "nodegroup":
		id = workflows.NodeGroupID(group)
		k.m.ending(group)
	default:
		name := k.m.listed(n, kind == "scale-in")
		if name == "" {
			return "", false
		}
		if id = workflows.ScaleOutID(name); kind == "scale-in" {
			id = workflows.ScaleInID(name)
		}
	}
	return id, do(id) == nil
}
