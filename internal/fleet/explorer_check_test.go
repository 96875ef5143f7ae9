package fleet_test

import (
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/driver"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// picture is the state of a group before a step. The checks compare it with the state after the step.
type picture struct {
	epoch    string
	next     int
	revision int64
	rows     []fleet.Instance
}

func (x *explorer) look(l *fleet.Ledger) picture {
	p := picture{epoch: l.Epoch, next: l.NextSeq, revision: l.Revision}
	for _, e := range l.Entries {
		p.rows = append(p.rows, e.Instance)
	}
	return p
}

// checkLedger compares a group after a step with its state before. An instance stops counting only by a call of CA, a
// loss, the expiry of a failed instance after an hour, or a reverted history (invariants I1 and I3). Only CA books
// instances.
func (x *explorer) checkLedger(before picture, l *fleet.Ledger) {
	if before.epoch != l.Epoch {
		return
	}
	if before.next != l.NextSeq {
		x.violates("a step of %s booked an instance", l.Group)
	}
	if l.Revision < before.revision {
		x.violates("%s starts its own epoch %s again", l.Group, l.Epoch)
	}
	for _, e := range l.Entries {
		known := e.Driver.Kind == fleet.ScaleOut && e.Driver.Generation.Known() && !l.Recovering
		starting := l.Commands.Find(e.Driver.Start) != nil // an order would arrive before the driver's start
		if known && e.Leaving && e.Driver.Sent.Deleted == starting {
			x.violates("the driver of %s does not hear that it was deleted", e.Name)
		}
	}
	for _, e := range l.Entries {
		was, released := x.over[e.Name]
		if released && e.Counts() && was.epoch == l.Epoch && x.now.Sub(was.at) < time.Hour {
			x.violates("%s takes %s back, which it has released", l.Group, e.Name)
		}
	}
	for _, was := range before.rows {
		e := l.Find(was.Name)
		if was.Phase == fleet.Released || e == nil {
			x.over[was.Name] = over{l.Epoch, x.now}
		}
		name := was.Name
		if !was.Counts() || e != nil && e.Counts() || x.released[name] || x.harmed[name] || x.mode >= modeTerminate {
			continue
		}
		if was.Phase != fleet.Failed || x.now.Sub(was.Since) < time.Hour {
			x.violates("%s in %s stopped counting for no reason", name, was.Phase)
		}
	}
}

// checkOperation checks that an operation fulfils the invariants I1, I2, I4 and I7.
func (x *explorer) checkOperation(before picture, target int, l *fleet.Ledger, c call, err error) {
	if err != nil {
		if before.epoch == l.Epoch && l.Target() != target {
			x.violates("a refused %s changed the target", c.verb)
		}
		return
	}
	grown := l.NextSeq - before.next
	if again := x.operations[c.request.Operation.ID]; again && c.verb != fleet.Configure && x.mode < modeTerminate &&
		l.Target() != target {
		x.violates("%s %s ran twice", c.verb, c.request.Operation.ID)
	}
	x.operations[c.request.Operation.ID] = true
	for _, e := range l.Entries[len(l.Entries)-grown:] {
		name := e.Name
		if x.names[name] {
			x.violates("the name %s is given twice", name)
		}
		if !fleet.EpochBefore(l.Epoch, fleet.NewEpoch(x.now)) {
			x.violates("%s is booked within the second of its epoch", name)
		}
		x.names[name] = true
	}
	x.checkShrink(before, l, c)
	taken := 0
	for _, was := range before.rows {
		if e := l.Find(was.Name); was.Counts() && e != nil && !e.Counts() {
			taken++
			x.released[was.Name] = true
		}
		if slices.Contains(c.request.Names, was.Name) {
			x.released[was.Name] = true
		}
	}
	for _, name := range c.request.Names {
		x.released[name] = true
	}
	if l.Target() != target+grown-taken || c.verb == fleet.Grow && grown != 0 && grown != c.request.Delta {
		x.violates("%s of %d: target %d -> %d", c.verb, c.request.Delta, target, l.Target())
	}
}

// checkShrink checks a shrink against invariant I4: it cancels as many unfinished instances as it can, the youngest
// first.
func (x *explorer) checkShrink(before picture, l *fleet.Ledger, c call) {
	if c.verb != fleet.Shrink || before.epoch != l.Epoch || before.revision == l.Revision {
		return
	}
	left := c.request.Delta
	for _, was := range slices.Backward(before.rows) {
		if !was.Counts() || was.Registered || was.Phase == fleet.Ready {
			continue
		}
		e := l.Find(was.Name)
		if taken := e == nil || !e.Counts(); taken != (left > 0) {
			x.violates("a shrink by %d takes %s back: %v", c.request.Delta, was.Name, taken)
		}
		left--
	}
}

func (x *explorer) publishGroup(r *run, l *fleet.Ledger) {
	s := l.Snapshot(x.now)
	if old, ok := r.memo.(fleet.Snapshot); ok && old.Position() == s.Position() {
		x.sameRows(old, s)
	}
	counted := 0
	for _, row := range s.Instances {
		if row.Counts {
			counted++
		}
	}
	if counted != s.Target {
		x.violates("%s publishes a target of %d and %d instances that count", l.Group, s.Target, counted)
	}
	r.memo = s
}

// checkStops checks a group after a step in which it received these views. If a view comes from a driver that the
// group does not know, the group must send this driver the order Stop.
func (x *explorer) checkStops(l *fleet.Ledger, views []fleet.View) {
	if l.Recovering || l.Spec == nil {
		return
	}
	for _, v := range views {
		e := l.Find(v.Instance)
		ends := slices.ContainsFunc(views, func(later fleet.View) bool {
			return later.Instance == v.Instance && later.End != fleet.EndNone
		})
		// The group has started a new epoch, and the driver continued. Its report on an earlier attempt arrives late.
		// The group waits for this driver.
		wentOn := e != nil && e.Driver.Kind != "" && !e.Driver.Generation.Known() && v.Attempt < e.Attempt
		if ends || wentOn || e != nil && e.Driver.Generation == v.Generation {
			continue
		}
		if !slices.ContainsFunc(l.Commands.Open, func(c fleet.Command) bool {
			return c.Kind == fleet.CommandOrder && c.Instance == v.Instance && c.Order.Stop && c.Order.Generation == v.Generation
		}) {
			x.violates("the driver of %s, generation %v, is not ordered to stop", v.Instance, v.Generation)
		}
	}
}

// checkPeering compares the entity's state after a report with the actual peering.
func (x *explorer) checkPeering(id string, t provider.Transition) {
	made := t.From == fleet.Establishing || t.From == fleet.Repairing
	removed := t.From == fleet.Removing || t.From == fleet.Compensating
	peered := x.provider(id).peered
	if t.Event == fleet.PeeringDone && (made && !peered || removed && peered) && x.mode < modeTerminate {
		x.violates("%s goes from %s to %s, and is peered: %v", id, t.From, t.To, peered)
	}
}

// checkHolds checks a provider's holds against the releases that it has received within the last hour. A new entity
// books holds for the objects that exist. This includes an object that a hanging Join has created in the meantime and
// that a group in a new epoch has adopted.
func (x *explorer) checkHolds(p *providerRun) {
	for _, key := range p.p.LiveHolds() {
		exists := slices.ContainsFunc(x.objects, func(o *object) bool {
			return o.Attempt.ObjectName() == key && o.granted == p.p.ID
		})
		if at, told := p.released[key]; told && x.now.Sub(at) < time.Hour && (!exists || x.mode < modeTerminate) {
			x.violates("%s holds %s, which was released at %s", p.p.ID, key, at.Format("15:04:05"))
		}
	}
}

// checkDriver checks the actions of a driver against its events. A stopped driver starts no further step, releases a
// grant for an attempt that it has left, and ends with a view.
func (x *explorer) checkDriver(d *driverRun, was int, ev driver.Event, actions []driver.Action) {
	name := d.d.Instance.Name
	gave := false
	for _, a := range actions {
		gave = gave || a.Release != nil && ev.Answer != nil && a.Release.ObjectName() == ev.Answer.Key
		if d.stopped && (a.Run != fleet.StepNone || a.Resend || a.Report != nil && a.Report.End == fleet.EndNone) {
			x.violates("the driver of %s continues although it was ordered to stop", name)
		}
		if phase := d.d.Instance.Phase; a.End != fleet.EndNone && a.Report == nil && phase != fleet.Ready &&
			phase != fleet.Released {
			x.violates("the driver of %s ends in %s without a view", name, phase)
		}
	}
	ungranted := d.d.Instance.Phase == fleet.Discovering || d.d.Instance.Phase == fleet.Selecting ||
		d.d.Instance.Phase == fleet.Peering
	if o := ev.Order; o != nil && o.Paused && !d.d.Generation.Before(o.Generation) &&
		!o.Generation.Before(d.d.Generation) && ungranted && d.d.Ending == "" {
		x.violates("the driver of %s continues without a grant although its group is paused", name)
	}
	if o := ev.Order; o != nil && o.Stop && d.stopped && d.d.Ending != fleet.Stopped {
		x.violates("the driver of %s does not answer the stop", name)
	}
	if a := ev.Answer; a != nil && a.State == fleet.HoldGranted && fleet.AttemptOfKey(a.Key) < was && !gave {
		x.violates("%s keeps the grant of %s, which it left for attempt %d", name, a.Key, was)
	}
}

func (x *explorer) checkProvider(p *provider.State) {
	for _, h := range p.Holds {
		if row := p.Phase.Row(); h.State == fleet.HoldWaiting && !row.Waits && !p.Recovering {
			x.violates("%s waits for %s, which is %s", h.Key, p.ID, p.Phase)
		}
	}
	for _, h := range p.Holds {
		if h.State == fleet.HoldWaiting && !p.Cordoned.IsZero() {
			x.violates("%s waits for %s, which is cordoned", h.Key, p.ID)
		}
		if h.State == fleet.HoldGranted && !p.Cordoned.IsZero() && h.Since.After(p.Cordoned) && x.mode < modeTerminate {
			x.violates("%s is granted by %s, which is cordoned", h.Key, p.ID)
		}
	}
	row := p.Phase.Row()
	inForce := p.Refusing != nil && !p.Refusing.Over(x.now) && !p.Recovering
	if inForce && (row.Grants || row.Waits && row.Phase != fleet.Removing) {
		x.violates("%s refuses us, and is %s", p.ID, p.Phase)
	}
	if n := len(nodeHolds(p)); n > x.provider(p.ID).nodes && x.mode < modeTerminate {
		x.violates("%s has %d live holds and room for %d", p.ID, n, x.provider(p.ID).nodes)
	}
}

// removesPeering checks the removal of a peering: no hold may exist on it (invariant I11).
func (x *explorer) removesPeering(c *cluster, runNumber int) {
	r := x.runs["provider/"+c.id]
	if r == nil || r.status != running {
		return
	}
	p := r.actor.(*providerRun).p
	for _, h := range p.Holds {
		if h.State == fleet.HoldGranted && x.mode < modeTerminate {
			x.violates("the peering with %s goes (run %d, now %d) while %s holds it", c.id, runNumber, p.Run, h.Key)
		}
	}
}

// destroys checks the removal of an object of ours. The removal of a finished Node must have a reason.
func (x *explorer) destroys(o *object, how string) {
	name := o.Attempt.Instance
	if !o.Marked || !o.Stamped || o.Terminating || x.released[name] || x.harmed[name] || x.excused[name] {
		return
	}
	if l := x.group(o.Attempt.Group); x.restored && l != nil && l.Find(name) != nil &&
		l.Find(name).Undone >= o.Attempt.Number { // its group has recorded the undo since then, see docs/operations.md
		return
	}
	x.violates("%s is finished and healthy, and %s takes it away", o.Attempt.ObjectName(), how)
}

// undoes reports whether an undo that runs or starts will soon release the hold.
func (x *explorer) undoes(key string) bool {
	if u := x.runs["undo/"+key]; u != nil && u.status == running {
		return true
	}
	return slices.ContainsFunc(x.servers, func(s *server) bool {
		l := x.group(s.spec.ID)
		return l != nil && slices.ContainsFunc(l.Commands.Open, func(c fleet.Command) bool {
			return c.Kind == fleet.CommandUndo && c.Attempt.ObjectName() == key
		})
	})
}

// countUndo counts the undos that start when the world has no more faults.
func (x *explorer) countUndo(at fleet.Attempt) {
	often := 3
	if x.restored { // a group with a reverted history repeats the undo until the forgotten driver's Join gives up
		often = 15
	}
	if x.calm {
		if x.undone[at.ObjectName()]++; x.undone[at.ObjectName()] > often {
			x.violates("%s is undone again and again", at.ObjectName())
		}
	}
}

func (x *explorer) undoStarted(at fleet.Attempt) {
	if l := x.group(at.Group); x.mode >= modeTerminate && (l == nil || l.Find(at.Instance) == nil) {
		x.excused[at.Instance] = true // an orphan that was unfinished when the round listed it
	}
	// A Join whose result was lost runs again. Its instance may have been released in between.
	wanted := func() bool {
		l := x.group(at.Group)
		return l != nil && l.Find(at.Instance) != nil && l.Find(at.Instance).Phase != fleet.Released
	}
	if r := x.runs["scale-out/"+at.Instance]; r != nil && r.status == running && x.mode < modeTerminate && wanted() {
		if d := r.actor.(*driverRun); d.end == fleet.EndNone && d.d.Instance.Attempt == at.Number &&
			d.d.Instance.Phase == fleet.Joining {
			x.violates("%s is undone while it joins", at.ObjectName())
		}
	}
	if x.mode == modeLoad && !x.released[at.Instance] {
		x.violates("load alone has %s undone", at.ObjectName())
	}
}

// heals checks that a repair was necessary. In a mode that terminates no workflows, objects may be left behind only
// when CA or an operator has cancelled a step, or when the test has removed an object.
func (x *explorer) heals(instance, what string) {
	if x.mode < modeTerminate && !x.released[instance] && !x.harmed[instance] && !x.excused[instance] {
		x.violates("%s: %s", instance, what)
	}
}

// checkRest checks the conditions that must hold when all activity has ended (invariants I1 and I9).
func (x *explorer) checkRest() {
	booked := map[string]string{}
	for _, s := range x.servers {
		l := x.group(s.spec.ID)
		if l == nil || l.Recovering || len(l.Commands.Open) > 0 {
			x.violates("%s is not at rest: %v", s.spec.ID, l)
			return
		}
		for _, e := range l.Entries {
			if e.Phase != fleet.Ready || e.Leaving || e.Driver.Kind != "" {
				x.violates("%s rests in %s, leaving %v, stuck %q, driver %q", e.Name, e.Phase, e.Leaving, e.Stuck, e.Driver.Kind)
				continue
			}
			booked[fleet.ObjectName(e.Name, e.Attempt)] = e.Provider()
		}
	}
	for _, o := range x.objects {
		name := o.Attempt.ObjectName()
		if booked[name] == "" || !o.Slice || !o.Virtual || !o.Node || !o.Marked || !o.Stamped || o.Terminating {
			x.violates("%+v is at rest, booked on %q", o.Found.Attempt, booked[name])
		}
		if booked[name] != o.granted {
			x.violates("%s is booked on %s and stands on %s", name, booked[name], o.granted)
		}
	}
	if len(x.objects) != len(booked) {
		x.violates("%d instances are Ready, and %d stand", len(booked), len(x.objects))
	}
	for _, c := range x.clusters {
		x.checkClusterRest(c, booked)
	}
	for _, r := range x.active {
		if !r.entity() {
			x.violates("%s still runs", r.id)
		}
	}
}

func (x *explorer) checkClusterRest(c *cluster, booked map[string]string) {
	var want []string
	for name, on := range booked {
		if on == c.id {
			want = append(want, name)
		}
	}
	slices.Sort(want)
	r := x.runs["provider/"+c.id]
	if r == nil || r.status != running {
		if len(want) > 0 {
			x.violates("provider/%s does not run", c.id)
		}
		return
	}
	p := r.actor.(*providerRun).p
	want = append(want, x.standbysOf(c)...)
	if got := p.LiveHolds(); !slices.Equal(got, want) {
		x.violates("%s: held by %v, and used by %v", c.id, got, want)
	}
	if c.peered != (len(want) > 0) {
		x.violates("%s: peered %v with %v, in %s, keep until %s", c.id, c.peered, want, p.Phase, p.KeepUntil)
	}
	if p.Phase != fleet.Absent && p.Phase != fleet.Established || len(p.Commands.Open) > 0 {
		x.violates("%s rests in %s with %d open commands", c.id, p.Phase, len(p.Commands.Open))
	}
}
