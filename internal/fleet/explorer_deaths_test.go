package fleet_test

import (
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// tooLate delivers messages late, when the subject of a message has ended. The subject is an instance that was removed,
// a hold that was released, or a run of a peering that another run has replaced.
func (x *explorer) tooLate() {
	for _, a := range x.acts {
		t, tells := a.do.(*tell)
		if !a.ghost || !tells {
			continue
		}
		l := x.group(t.group)
		gone := t.view != nil && l != nil && l.Find(t.view.Instance) == nil
		released, followed := false, false
		if r := x.runs["provider/"+t.provider]; r != nil && r.status == running {
			p := r.actor.(*providerRun)
			released = slices.ContainsFunc(t.holds, func(h fleet.HoldRequest) bool {
				return h.Kind == fleet.HoldAcquire && !p.released[h.Key].IsZero()
			})
			followed = t.report != nil && p.p.Run > t.report.Run
		}
		if gone || released || followed {
			x.count("deliveries too late")
			a.notBefore = x.now
		}
	}
}

// terminate and all functions below cause faults that end workflows.
func (x *explorer) terminate() {
	if r := x.pick(func(r *run) bool { return !r.entity() || x.chance(20) }); r != nil {
		x.note("terminate %s", r.id)
		x.count("terminated")
		x.end(r, failed)
	}
}

// strand terminates a driver that has sent its choice to its group, but not yet to the provider. The provider receives
// the request minutes later, when the group may already have undone the attempt.
func (x *explorer) strand() {
	s := x.servers[x.rng.IntN(len(x.servers))]
	x.resize(s, fleet.Grow, 1)
	x.rush(s)
	x.discover()
	for _, a := range x.acts {
		t, tells := a.do.(*tell)
		if !tells || !t.local || a.owner.status != running || x.runs[a.owner.id] != a.owner {
			continue
		}
		x.note("strand %s", a.owner.id)
		x.count("stranded")
		(&tell{group: t.group, view: t.view}).deliver(x)
		x.end(a.owner, failed)
		x.drop(a)
		x.hauntAt(&tell{provider: t.provider, holds: t.holds}, 150*time.Second+x.upTo(30*time.Minute))
		return
	}
}

// discover runs Discover and Select for drivers that have just started.
func (x *explorer) discover() {
	for range 3 {
		for _, a := range slices.Clone(x.acts) {
			if _, discovers := a.do.(*discover); discovers && !a.notBefore.After(x.now) {
				x.execute(a)
			}
		}
		for _, r := range slices.Clone(x.active) {
			if _, drives := r.actor.(*driverRun); drives && r.failing.IsZero() && len(r.inbox) > 0 {
				in := r.inbox
				r.inbox = nil
				r.actor.task(x, r, in)
			}
		}
	}
}

// hang terminates a driver whose Join hangs. The Join completes long after CA has deleted the instance.
func (x *explorer) hang() {
	for _, a := range x.acts {
		j, joins := a.do.(*join)
		if !joins || a.owner.status != running || x.runs[a.owner.id] != a.owner {
			continue
		}
		x.note("%s hangs", j.at.ObjectName())
		x.count("hung")
		x.excused[j.at.Instance] = true
		x.end(a.owner, failed)
		x.drop(a)
		x.hauntAt(j, 3*time.Minute+x.upTo(6*time.Minute))
		for _, s := range x.servers {
			if s.spec.ID == j.at.Group {
				x.release(s, []string{j.at.Instance})
			}
		}
		return
	}
}

// dieYoung terminates a group and starts it again immediately, twice.
func (x *explorer) dieYoung() {
	for range 2 {
		if r := x.runs["nodegroup/"+x.servers[0].spec.ID]; r != nil && r.status == running {
			x.note("terminate %s", r.id)
			x.end(r, failed)
		}
		x.hurry()
	}
}

// crowd terminates a group after a scale-out has begun. Before that scale-out reports, crowd books instances up to
// the group's max, so that the group cannot adopt the scale-out.
func (x *explorer) crowd() {
	s := x.servers[x.rng.IntN(len(x.servers))]
	x.resize(s, fleet.Grow, 1)
	x.rush(s)
	r := x.runs["nodegroup/"+s.spec.ID]
	if r.status != running {
		return
	}
	x.note("crowd %s", r.id)
	x.end(r, failed)
	for range 3 {
		x.rush(s)
		x.pass(time.Second)
	}
	for range s.spec.Max {
		x.resize(s, fleet.Grow, 1)
	}
}

// hurry lets the first server start its group and book an instance in it, if possible before any time passes.
func (x *explorer) hurry() {
	x.rush(x.servers[0])
	x.ca(x.servers[0])
}

// rush makes the server start its group, and makes the group execute its commands immediately.
func (x *explorer) rush(s *server) {
	for range 8 {
		x.refresh(s)
		r := x.runs["nodegroup/"+s.spec.ID]
		for _, a := range slices.Clone(x.acts) {
			if a.owner == r && !a.notBefore.After(x.now) {
				x.execute(a)
			}
		}
		if in := r.inbox; r.status == running && len(in) > 0 {
			r.inbox = nil
			r.actor.task(x, r, in)
		}
	}
}

// failTask makes all further workflow tasks of a driver fail.
func (x *explorer) failTask() {
	if r := x.pick(func(r *run) bool { _, is := r.actor.(*driverRun); return is && r.failing.IsZero() }); r != nil {
		x.note("%s fails its task", r.id)
		x.count("failing tasks")
		r.failing = x.now
	}
}

// reset starts an entity without its state. It starts a driver, even a closed one, in its state of a few tasks ago.
func (x *explorer) reset() {
	ids := sortedIDs(x.runs)
	if len(ids) == 0 {
		return
	}
	r := x.runs[ids[x.rng.IntN(len(ids))]]
	if r.entity() && x.chance(80) {
		return
	}
	x.note("reset %s", r.id)
	x.count("reset")
	switch a := r.actor.(type) {
	case *group:
		x.continueAsNew(r, x.newGroup(a.l.Group), false)
	case *providerRun:
		x.continueAsNew(r, x.newProvider(a.p.ID), false)
	case *peering:
		x.signal(r.id, reset{})
	case *driverRun:
		if len(r.past) == 0 {
			return
		}
		d := r.past[x.rng.IntN(len(r.past))].clone().(*driverRun)
		x.end(r, failed)
		delete(x.runs, r.id)
		x.start(r.id, true, d, reset{})
		next := x.runs[r.id]
		if d.telling, next.inbox = 0, next.inbox[1:]; d.step != 0 {
			d.step = x.schedule(next, d.doing)
		}
	}
}

// backUp copies all workflows. In half of the copies scale-outs have just begun.
func (x *explorer) backUp() {
	if x.chance(50) {
		for _, s := range x.servers {
			x.resize(s, fleet.Grow, 1)
		}
		for range 20 {
			x.step()
		}
	}
	x.saved = x.copy()
}

// goBack replaces all workflows by an old copy, as the restore of a database does. The latest bookings or releases are
// lost.
func (x *explorer) goBack() {
	saved := x.saved
	if saved == nil || x.chance(50) {
		return
	}
	x.saved = nil
	releases := x.chance(50)
	for _, s := range x.servers {
		if releases {
			x.release(s, x.finishedSince(saved, s))
		} else {
			x.resize(s, fleet.Grow, 1)
		}
	}
	for n := 0; releases && n < 30; n++ { // the groups save the releases, and drivers remove the nodes
		x.step()
	}
	x.note("restore")
	x.count("restored")
	x.restore(saved)
	for _, s := range x.servers {
		if x.chance(50) { // the server restarted and lost its data
			s.picture = fleet.Snapshot{}
			x.resize(s, fleet.Grow, 1)
		}
	}
}

// finishedSince returns the instances that are Ready and whose scale-outs ran at the time of the old copy.
func (x *explorer) finishedSince(old *temporal, s *server) (names []string) {
	was, l := old.runs["nodegroup/"+s.spec.ID], x.group(s.spec.ID)
	if was == nil || l == nil {
		return nil
	}
	for _, e := range was.actor.(*group).l.Entries {
		if now := l.Find(e.Name); e.Phase.Growing() && now != nil && now.Phase == fleet.Ready {
			names = append(names, e.Name)
		}
	}
	return names
}
