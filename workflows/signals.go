package workflows

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// drain applies every signal that has come.
func (g *nodeGroup) drain(ctx workflow.Context) {
	changed := false
	for {
		var r Report
		if !g.reports.ReceiveAsync(&r) {
			break
		}
		g.take(ctx, r)
		changed = true
	}
	for {
		var f fleet.Fact
		if !g.facts.ReceiveAsync(&f) {
			break
		}
		changed = g.learn(ctx, f) || changed
	}
	for g.retry.ReceiveAsync(nil) {
		for i := range g.ledger.Instances {
			g.ledger.Instances[i].Stuck = ""
		}
		changed = true
	}
	if changed {
		g.publish(ctx)
		g.dirty = true
	}
}

// take applies one report. A report of an instance the Ledger does not know is answered with "leave".
func (g *nodeGroup) take(ctx workflow.Context, r Report) {
	log := workflow.GetLogger(ctx)
	inst, d := g.ledger.Find(r.Instance), g.drivers[r.Instance]
	if inst == nil {
		log.Warn("report of an unknown instance", "group", g.id, "instance", r.Instance)
		g.disown(ctx, r)
		return
	}
	if d == nil || !strings.HasPrefix(r.From, here(ctx, d.WorkflowID)+"/") {
		log.Warn("report of a workflow that does not drive the instance", "group", g.id, "instance", r.Instance, "from", r.From, "event", string(r.Event.Kind))
		g.disown(ctx, r)
		return
	}
	if d.From == r.From && r.Number <= d.Number {
		log.Warn("stale report", "group", g.id, "instance", r.Instance, "event", string(r.Event.Kind))
		return
	}
	d.From, d.Number = r.From, r.Number
	if r.Event.Kind != "" {
		g.apply(ctx, inst, r.Event)
	}
	if r.Closed {
		delete(g.drivers, r.Instance)
	}
}

// disown ends a scale-out that the group knows nothing of, or no longer: as after a recovery. What it has begun it has to
// undo itself, because of a mere hold nothing is to be found; what became of it otherwise the next look shows.
func (g *nodeGroup) disown(ctx workflow.Context, r Report) {
	g.hint(workflow.Now(ctx))
	if id := ScaleOutID(r.Instance); !r.Closed && strings.HasPrefix(r.From, here(ctx, id)+"/") {
		_ = g.tell(ctx, id, Leave{Undo: true}) // one that is closed has nothing to leave
	}
}

// learn takes a fact from watching. That something is lost is a hint only: the group looks for itself.
func (g *nodeGroup) learn(ctx workflow.Context, f fleet.Fact) (changed bool) {
	inst := g.ledger.Find(f.Instance)
	if inst == nil || inst.Attempt != f.Attempt {
		return false
	}
	switch {
	case f.Kind == fleet.Lost:
		g.hint(workflow.Now(ctx))
	case f.Kind == fleet.Registered && (!inst.Registered || inst.NotReady), f.Kind == fleet.NotReady && !inst.NotReady:
		if f.Kind == fleet.NotReady {
			g.hint(workflow.Now(ctx))
		}
		g.apply(ctx, inst, fleet.Event{Kind: f.Kind})
		return true
	}
	return false
}

func (g *nodeGroup) apply(ctx workflow.Context, inst *fleet.Instance, ev fleet.Event) {
	from := inst.Phase
	move, err := inst.Apply(ev, workflow.Now(ctx))
	if err != nil {
		workflow.GetLogger(ctx).Warn("event not applied", "group", g.id, "instance", inst.Name, "error", err)
		return
	}
	logTransition(ctx, true, inst, from, ev, move)
}
