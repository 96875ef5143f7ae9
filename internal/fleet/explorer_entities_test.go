package fleet_test

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/provider"
)

// group runs a Ledger in the same way as workflows.NodeGroup. providerRun runs a provider.State in the same way as
// workflows.Provider.
type group struct {
	l        *fleet.Ledger
	inFlight map[int64]bool
}

type providerRun struct {
	p        *provider.State
	inFlight map[int64]bool
	released map[string]time.Time // the time of the release of each hold
}

func copyOf[T any](x *explorer, from T) T {
	raw, err := json.Marshal(from)
	require.NoError(x, err)
	var to T
	require.NoError(x, json.Unmarshal(raw, &to))
	return to
}

func (x *explorer) newGroup(id string) *group {
	return &group{fleet.NewLedger(id, x.now), map[int64]bool{}}
}

func (x *explorer) newProvider(id string) *providerRun {
	return &providerRun{provider.New(id, x.now), map[int64]bool{}, map[string]time.Time{}}
}

func (g *group) clone() actor {
	raw, _ := json.Marshal(g.l)
	l := &fleet.Ledger{}
	_ = json.Unmarshal(raw, l)
	c := &group{l.Restore(), map[int64]bool{}}
	for id := range g.inFlight {
		c.inFlight[id] = true
	}
	return c
}

func (p *providerRun) clone() actor {
	raw, _ := json.Marshal(p.p)
	s := &provider.State{}
	_ = json.Unmarshal(raw, s)
	c := &providerRun{s, map[int64]bool{}, maps.Clone(p.released)}
	for id := range p.inFlight {
		c.inFlight[id] = true
	}
	return c
}

func (g *group) task(x *explorer, r *run, in []any) {
	var views fleet.GroupInput
	for _, m := range in {
		switch m := m.(type) {
		case []fleet.View:
			views.Views = append(views.Views, m...)
		case fleet.Fact:
			views.Facts = append(views.Facts, m)
		case string: // "retry"
			views.Retry = true
		}
	}
	for _, v := range views.Views {
		x.note("%s: view %s %s attempt %d, generation %v, sequence %d %s", r.id, v.Instance, v.Phase, v.Attempt, v.Generation,
			v.Sequence, v.End)
	}
	g.step(x, views)
	for _, m := range in {
		switch m := m.(type) {
		case fleet.Differences:
			g.step(x, fleet.GroupInput{Differences: &m})
		case ended:
			result := m.result.(fleet.Result)
			delete(g.inFlight, result.ID)
			g.step(x, fleet.GroupInput{Result: &result})
		}
	}
	g.step(x, fleet.GroupInput{})
	for _, cmd := range g.l.Commands.Open {
		if !g.inFlight[cmd.ID] && !cmd.NotBefore.After(x.now) {
			g.execute(x, r, cmd)
		}
	}
	x.publishGroup(r, g.l)
	if r.timer = g.l.Due(x.now); x.trouble(3) {
		x.count("continue-as-new")
		c := g.clone().(*group)
		c.inFlight = map[int64]bool{}
		x.continueAsNew(r, c, true)
	}
}

func (g *group) step(x *explorer, in fleet.GroupInput) {
	before, last := x.look(g.l), g.l.Commands.Last
	views := slices.Concat(g.l.Waiting, in.Views)
	g.l.Step(in, x.now)
	x.checkLedger(before, g.l)
	x.checkStops(g.l, views)
	for _, c := range g.l.Commands.Open {
		if in.Differences != nil && c.Kind == fleet.CommandUndo && c.ID > last &&
			x.runs["undo/"+c.Attempt.ObjectName()] == nil {
			x.heals(c.Attempt.Instance, "a comparison found "+c.Attempt.ObjectName())
		}
	}
	for _, t := range g.l.Transitions() {
		if t.Event == "replaced" {
			x.heals(t.Instance, "a driver was replaced")
		}
		x.note("%s %s -> %s attempt %d (%s)", t.Instance, t.From, t.To, t.Attempt, t.Event)
	}
}

func (g *group) execute(x *explorer, r *run, cmd fleet.Command) {
	c := command{cmd: cmd, group: g.l.Group}
	switch cmd.Kind {
	case fleet.CommandStart:
		in := g.l.DriverInput(cmd)
		if in == nil {
			g.l.Commands.Ended(fleet.Result{ID: cmd.ID}, x.now)
			return
		}
		c.driver = copyOf(x, *in)
	case fleet.CommandDescribe:
		for _, name := range cmd.Instances {
			if e := g.l.Find(name); e != nil && e.Driver.Kind != "" {
				c.drivers = append(c.drivers, string(e.Driver.Kind)+"/"+name)
				c.instances = append(c.instances, name)
			}
		}
	case fleet.CommandStandby:
		q := g.l.StandbyQuestion()
		if q == nil {
			g.l.Commands.Ended(fleet.Result{ID: cmd.ID}, x.now)
			return
		}
		c.standby = copyOf(x, *q)
	case fleet.CommandSave:
		c.position = g.l.Position()
	}
	g.inFlight[cmd.ID] = true
	x.note("%s: command %s %s%s %s", r.id, cmd.Kind, cmd.Driver, orderText(cmd), cmd.Instance+attemptText(cmd))
	x.schedule(r, &c)
}

func orderText(cmd fleet.Command) string {
	if cmd.Order == nil {
		return ""
	}
	raw, _ := json.Marshal(cmd.Order)
	return string(raw)
}

func answerText(cmd fleet.Command) string {
	if cmd.Answer == nil {
		return ""
	}
	return "/" + cmd.Answer.Key + " " + string(cmd.Answer.State)
}

func attemptText(cmd fleet.Command) string {
	if cmd.Attempt == nil {
		return ""
	}
	return cmd.Attempt.ObjectName()
}

func (p *providerRun) task(x *explorer, r *run, in []any) {
	for _, m := range in {
		if on, ok := m.(cordon); ok {
			p.step(x, provider.Input{Cordon: (*bool)(&on)})
		}
	}
	var requests []fleet.HoldRequest
	for _, m := range in {
		if rows, ok := m.([]fleet.HoldRequest); ok {
			requests = append(requests, rows...)
		}
	}
	for _, q := range requests {
		x.note("%s: %s %s", r.id, q.Kind, q.Key)
		if at, told := p.released[q.Key]; q.Kind == fleet.HoldRelease && (!told || x.now.Sub(at) > time.Hour) {
			p.released[q.Key] = x.now
		}
	}
	p.step(x, provider.Input{Requests: requests})
	for _, m := range in {
		switch m := m.(type) {
		case fleet.PeeringReport:
			p.step(x, provider.Input{Report: &m})
		case fleet.Differences:
			p.step(x, provider.Input{Differences: &m})
		case ended:
			result := m.result.(fleet.Result)
			delete(p.inFlight, result.ID)
			p.step(x, provider.Input{Result: &result})
		}
	}
	p.step(x, provider.Input{})
	for _, cmd := range p.p.Commands.Open {
		if p.inFlight[cmd.ID] || cmd.NotBefore.After(x.now) {
			continue
		}
		p.inFlight[cmd.ID] = true
		x.note("%s: command %s %s%s", r.id, cmd.Kind, cmd.Driver, answerText(cmd))
		x.schedule(r, &command{cmd: cmd, provider: p.p.ID, peering: p.p.PeeringInput()})
	}
	memo := p.p.Snapshot(x.now)
	memo.Free = memo.Free.DeepCopy() // a copy, because the state changes its map in place
	r.memo = memo
	if r.timer = p.p.Due(x.now); p.p.Over(x.now) {
		x.end(r, completed)
		return
	}
	if x.trouble(3) {
		c := p.clone().(*providerRun)
		c.inFlight = map[int64]bool{}
		x.continueAsNew(r, c, true)
	}
}

func (p *providerRun) step(x *explorer, in provider.Input) {
	before := p.p.LiveHolds()
	p.p.Step(in, x.now)
	for _, key := range before {
		if fleet.IsStandby(key) {
			x.checkStandbyRelease(p.p, key, in)
		} else if in.Differences != nil && !x.undoes(key) && !x.calledOff[key] && !contains(p.p.LiveHolds(), key) {
			x.heals(fleet.InstanceOfKey(key), "a comparison released hold "+key)
		}
	}
	x.checkProvider(p.p)
	x.checkHolds(p)
	for _, t := range p.p.Transitions() {
		x.note("%s %s -> %s (%s)", p.p.ID, t.From, t.To, t.Event)
		x.checkPeering(p.p.ID, t)
	}
}

// command executes a command of an entity in the same way as the activities Deliver and Inspect.
type command struct {
	cmd                fleet.Command
	group, provider    string
	driver             fleet.DriverInput
	peering            fleet.PeeringInput
	drivers, instances []string
	statuses           []fleet.DriverStatus
	standby            fleet.StandbyQuestion
	position           fleet.Position
}

func (c *command) pass(x *explorer, a *act) (any, bool) {
	r := fleet.Result{ID: c.cmd.ID, Outcome: fleet.OutcomeDone}
	already := func(was bool) {
		if was {
			r.Outcome = fleet.OutcomeAlreadyStarted
		}
	}
	if x.trouble(3) {
		r.Outcome = fleet.OutcomeFailed
		return r, true
	}
	switch cmd := c.cmd; cmd.Kind {
	case fleet.CommandStart:
		id, d := string(cmd.Driver)+"/"+cmd.Instance, newDriver(cmd.Driver, c.driver, x.now)
		if cmd.First {
			already(x.once(id, d))
		} else {
			already(x.start(id, false, d))
		}
	case fleet.CommandUndo:
		x.undoStarted(*cmd.Attempt)
		again := x.start("undo/"+cmd.Attempt.ObjectName(), true, &undo{at: *cmd.Attempt})
		if !again && !a.ghost { // a late delivery is an order of an earlier time
			x.countUndo(*cmd.Attempt)
		}
		already(again)
	case fleet.CommandOrder:
		r.Outcome = x.tell(string(cmd.Driver)+"/"+cmd.Instance, *cmd.Order)
	case fleet.CommandAnswer:
		r.Outcome = x.tell("scale-out/"+cmd.Instance, *cmd.Answer)
	case fleet.CommandPeering, fleet.CommandUnpeering:
		already(x.start(string(cmd.Kind)+"/"+c.provider, true, &peering{in: c.peering,
			removes: cmd.Kind == fleet.CommandUnpeering}))
	case fleet.CommandCancel:
		x.signal(string(cmd.Driver)+"/"+c.provider, cancelled{})
	case fleet.CommandHold:
		if !(&tell{provider: cmd.Provider, holds: []fleet.HoldRequest{*cmd.Hold}}).deliver(x) {
			r.Outcome = fleet.OutcomeFailed
		}
	case fleet.CommandStandby:
		r.Standby = x.rankStandby(c.standby)
	case fleet.CommandSave:
		x.savePosition(c)
	case fleet.CommandRecover:
		c.recover(x, &r)
	case fleet.CommandRefusal:
		if c := x.provider(c.provider); c.down {
			r.Outcome = fleet.OutcomeFailed
		} else if c.refusing {
			r.Refusing = x.refusal()
		}
	case fleet.CommandInspect:
		r.Found = x.list(func(a fleet.Attempt) bool { return contains(cmd.Instances, a.Instance) })
	case fleet.CommandDescribe:
		return c.check(x, r)
	}
	return r, true
}

func (c *command) recover(x *explorer, r *fleet.Result) {
	if c.group != "" {
		r.Found = x.list(func(a fleet.Attempt) bool { return a.Group == c.group })
		return
	}
	r.Found = x.list(func(a fleet.Attempt) bool { return a.Provider.ID == c.provider })
	if x.provider(c.provider).peered {
		linger := int64(5)
		r.Peering, r.LingerSeconds = &fleet.Provider{ID: c.provider}, &linger
	}
}

// check first describes the workflow, and lists the objects later.
func (c *command) check(x *explorer, r fleet.Result) (any, bool) {
	if c.statuses == nil {
		for n, id := range c.drivers {
			s := fleet.DriverStatus{Instance: c.instances[n]}
			if d := x.runs[id]; d != nil {
				s.Running, s.Completed = d.status == running, d.status == completed || d.status == instanceFailed
				s.Failing = s.Running && !d.failing.IsZero() && x.now.Sub(d.failing) >= 10*time.Minute
			} else {
				x.heals(s.Instance, id+" was never started")
			}
			c.statuses = append(c.statuses, s)
		}
		for n, s := range c.statuses {
			if s.Failing && !fleet.BuildFails(c.statuses) {
				x.end(x.runs[c.drivers[n]], failed)
			}
		}
		if len(c.statuses) > 0 {
			return nil, false
		}
	}
	found := x.list(func(a fleet.Attempt) bool { return contains(c.instances, a.Instance) })
	r.Drivers = append(r.Drivers, c.statuses...)
	for n := range r.Drivers {
		s := &r.Drivers[n]
		for _, f := range found {
			if (!s.Running || s.Failing) && f.Attempt.Instance == s.Instance && (s.Found == nil ||
				f.Attempt.Number > s.Found.Attempt.Number) {
				s.Found = &f
			}
		}
	}
	return r, true
}

// tell sends a signal to a workflow. If the workflow does not run, the signal fails, and the result is the outcome of
// this failure.
func (x *explorer) tell(id string, message any) fleet.Outcome {
	r := x.runs[id]
	switch {
	case x.signal(id, message):
		return fleet.OutcomeDone
	case r != nil && (r.status == completed || r.status == instanceFailed):
		return fleet.OutcomeCompleted
	default:
		return fleet.OutcomeNotRunning
	}
}
