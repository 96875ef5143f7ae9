package fleet_test

import (
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// temporal is the explorer's model of Temporal: the runs of workflows with their inboxes, and the running activities.
// It is plain data, so that a test can restore an old copy.
type temporal struct {
	runs   map[string]*run // the newest run of each id
	active []*run
	acts   []*act
	serial int
}

type status int

const (
	running status = iota
	completed
	failed
	// instanceFailed means that the workflow delivered its last view and then closed as Failed, because its instance
	// has failed.
	instanceFailed
)

// run is one run of a workflow.
type run struct {
	id      string
	serial  int
	status  status
	inbox   []any // signals, results of activities and requests of operators, in the order of arrival
	timer   time.Time
	failing time.Time // the time since which its workflow task fails; zero: the task succeeds
	actor   actor
	past    []actor // its states before its last tasks
	memo    any
	spins   int // number of consecutive tasks that did not handle a due timer
}

// actor is the code of a workflow. task handles new messages. clone returns a copy. The copy and the original share
// only data that task does not change.
type actor interface {
	task(x *explorer, r *run, in []any)
	clone() actor
}

// act is an activity. It runs until it is done. When its result is lost, it runs again.
type act struct {
	serial    int
	owner     *run
	do        doer
	notBefore time.Time
	cancelled bool
	tries     int
	ghost     bool // Temporal has given up this try, so no workflow receives its result
}

// doer is the work of an activity. pass runs one pass; when done is false, the pass must be repeated.
type doer interface {
	pass(x *explorer, a *act) (result any, done bool)
}

// ended is the result of an activity in the form in which its workflow receives it.
type ended struct {
	act    int
	result any
}

// The function `once` starts a workflow, unless a workflow with this id has run before.
func (x *explorer) once(id string, a actor) (already bool) {
	return x.runs[id] != nil || x.start(id, false, a)
}

func (x *explorer) start(id string, again bool, a actor, first ...any) (already bool) {
	if r := x.runs[id]; r != nil && (r.status == running || r.status == completed && !again) {
		return true
	}
	x.serial++
	x.pass(time.Microsecond) // two runs of one id never begin at the same instant
	x.note("%s starts", id)
	r := &run{id: id, serial: x.serial, actor: a, inbox: append([]any{nil}, first...)}
	x.runs[id] = r
	x.active = append(x.active, r)
	return false
}

// signal puts a message into the durable inbox of a running workflow.
func (x *explorer) signal(id string, message any) bool {
	r := x.runs[id]
	if r == nil || r.status != running {
		return false
	}
	r.inbox = append(r.inbox, message)
	return true
}

func (x *explorer) end(r *run, s status) {
	x.note("%s ends", r.id)
	r.status, r.inbox, r.timer = s, nil, time.Time{}
	x.active = slices.DeleteFunc(x.active, func(other *run) bool { return other == r })
}

// continueAsNew replaces a run by the next run of its chain. Messages may arrive in the meantime. If keep is true,
// the next run receives them.
func (x *explorer) continueAsNew(r *run, a actor, keep bool) {
	inbox := slices.DeleteFunc(r.inbox, func(m any) bool { _, is := m.(ended); return is || !keep })
	memo := r.memo
	x.end(r, completed)
	delete(x.runs, r.id)
	x.start(r.id, true, a, inbox...)
	x.runs[r.id].memo = memo
}

func (x *explorer) schedule(owner *run, do doer) int {
	x.serial++
	x.acts = append(x.acts, &act{serial: x.serial, owner: owner, do: do})
	return x.serial
}

func (x *explorer) cancelAct(serial int) {
	for _, a := range x.acts {
		if a.serial == serial {
			a.cancelled, a.notBefore = true, time.Time{}
		}
	}
}

// execute runs one pass of an activity. The pass may fail before its effect, or lose its result afterwards.
func (x *explorer) execute(a *act) {
	a.tries++
	j, joins := a.do.(*join)
	if a.ghost {
		if _, done := a.do.pass(x, a); done || !joins || a.tries > 40 { // the budget of Join bounds its number of passes
			x.drop(a)
		}
		return
	}
	zombie := x.runs[a.owner.id] != a.owner || a.owner.status != running
	if zombie && x.chance(50) {
		x.drop(a)
		return
	}
	if x.trouble(5) {
		x.count("lost tries")
		a.notBefore = x.now.Add(x.upTo(10 * time.Second))
		x.haunt(a.do)
		return
	}
	if zombie && joins {
		x.excused[j.at.Instance] = true // this Join may complete objects that a round has just listed as incomplete
	}
	result, done := a.do.pass(x, a)
	if done && x.trouble(10) {
		x.haunt(a.do)
	}
	switch {
	case zombie:
		x.drop(a)
	case !done:
		a.notBefore = x.now.Add(time.Second)
	case x.trouble(5):
		x.count("lost results")
		a.notBefore = x.now.Add(x.upTo(10 * time.Second))
	default:
		x.drop(a)
		a.owner.inbox = append(a.owner.inbox, ended{a.serial, result})
	}
}

// haunt simulates a worker that hung during a delivery and now continues. Long ago, the delivery was given up or
// tried again. The message of this worker therefore arrives late, twice, or after newer messages.
func (x *explorer) haunt(do doer) {
	switch was := do.(type) {
	case *tell:
		late := *was
		do = &late
	case *command:
		if was.cmd.Kind == fleet.CommandDescribe { // a description changes nothing
			return
		}
		late := *was
		do = &late
	default:
		return
	}
	late := 5 * time.Second
	if x.chance(50) {
		late = 3 * time.Minute
	}
	x.hauntAt(do, x.upTo(late))
}

func (x *explorer) hauntAt(do doer, late time.Duration) {
	x.serial++
	x.acts = append(x.acts, &act{serial: x.serial, owner: &run{}, do: do, notBefore: x.now.Add(late), ghost: true})
	x.count("late deliveries")
}

func (x *explorer) drop(a *act) {
	x.acts = slices.DeleteFunc(x.acts, func(other *act) bool { return other == a })
}

// copy returns a copy of the whole model.
func (t *temporal) copy() *temporal {
	c := &temporal{runs: map[string]*run{}, serial: t.serial}
	copies := map[*run]*run{}
	copyRun := func(r *run) *run {
		if copies[r] == nil {
			n := *r
			if n.inbox, n.past = slices.Clone(r.inbox), nil; r.actor != nil {
				n.actor = r.actor.clone()
			}
			copies[r] = &n
		}
		return copies[r]
	}
	for id, r := range t.runs {
		c.runs[id] = copyRun(r)
	}
	for _, r := range t.active {
		c.active = append(c.active, copyRun(r))
	}
	for _, a := range t.acts {
		n := *a
		n.owner = copyRun(a.owner)
		c.acts = append(c.acts, &n)
	}
	return c
}

// restore replaces the model by an old copy. Some activities from before the replacement still run to their end on a
// worker.
func (x *explorer) restore(old *temporal) {
	serial, acts := x.serial, x.acts
	for _, s := range x.servers {
		x.forget(x.group(s.spec.ID))
	}
	x.temporal = *old.copy()
	x.serial = serial + 1
	clear(x.over)
	x.restored = true
	x.pass(time.Second) // Temporal is stopped during the replacement of its database
	for _, a := range acts {
		if x.chance(30) {
			x.acts = append(x.acts, a)
		}
	}
}
