package fleet_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// server is the gRPC server's data about one group: the group's newest snapshot, and the calls whose answers were lost.
type server struct {
	spec    *fleet.GroupSpec
	picture fleet.Snapshot
	lost    []call
	calls   int
}

type call struct {
	verb    fleet.Verb
	request fleet.Request
}

func (x *explorer) group(id string) *fleet.Ledger {
	if r := x.runs["nodegroup/"+id]; r != nil && r.status == running {
		return r.actor.(*group).l
	}
	return nil
}

// refresh runs in the server every few seconds. It reads the groups and starts the missing ones. When a group is behind
// the server's snapshot, refresh makes it start a new epoch.
func (x *explorer) refresh(s *server) {
	id := s.spec.ID
	l := x.group(id)
	if l == nil {
		x.start("nodegroup/"+id, true, x.newGroup(id))
		return
	}
	memo, ok := x.runs["nodegroup/"+id].memo.(fleet.Snapshot)
	if !ok || memo.Revision == 0 {
		return
	}
	wentBack := s.picture.Newer(memo)
	if memo.Newer(s.picture) {
		s.picture = memo
	}
	if memo.Spec == nil || wentBack || memo.Spec.Standby != s.spec.Standby {
		x.operate(s, call{fleet.Configure, fleet.Request{Spec: s.spec, Seen: s.picture.Position()}})
	}
}

// ca sends one request of Cluster Autoscaler, or repeats an earlier call.
func (x *explorer) ca(s *server) {
	if len(s.lost) > 0 && x.chance(30) {
		c := s.lost[0]
		s.lost = s.lost[1:]
		x.count("calls sent twice")
		x.operate(s, c)
		return
	}
	verb := []fleet.Verb{fleet.Grow, fleet.Grow, fleet.Shrink, fleet.Release}[x.rng.IntN(4)]
	if verb == fleet.Release {
		var names []string
		for _, row := range s.picture.Instances {
			if x.chance(30) {
				names = append(names, row.Name)
			}
		}
		x.release(s, names)
		return
	}
	x.resize(s, verb, 1+x.rng.IntN(2))
}

func (x *explorer) resize(s *server, verb fleet.Verb, by int) {
	r := x.request(s, 5*time.Second)
	r.Delta = by
	x.operate(s, call{verb, r})
}

func (x *explorer) release(s *server, names []string) {
	r := x.request(s, 5*time.Second)
	r.Names = names
	x.operate(s, call{fleet.Release, r})
}

// request returns a new operation. Its caller gives up after the given time.
func (x *explorer) request(s *server, after time.Duration) fleet.Request {
	s.calls++
	return fleet.Request{
		Operation: fleet.Operation{ID: fmt.Sprintf("%s-%d", s.spec.ID, s.calls), GiveUpAt: x.now.Add(after)},
		Seen:      s.picture.Position(),
	}
}

// operate sends a call to the group. The answer may be lost, and then the call may be repeated.
func (x *explorer) operate(s *server, c call) {
	l := x.group(s.spec.ID)
	if l == nil {
		return
	}
	before, target := x.look(l), l.Target()
	err := l.Operate(c.verb, c.request, x.now)
	x.note("%s: %s %d %v: %v", s.spec.ID, c.verb, c.request.Delta, c.request.Names, err)
	x.checkOperation(before, target, l, c, err)
	x.signal("nodegroup/"+s.spec.ID, nil)
	if err != nil {
		return
	}
	if c.verb != fleet.Configure && x.trouble(20) {
		s.lost = append(s.lost, c)
		x.count("lost answers")
		return
	}
	if next := copyOf(x, l.Snapshot(x.now)); next.Newer(s.picture) {
		s.picture = next
		x.sameRows(next, l.Snapshot(x.now))
	}
}

func (x *explorer) sameRows(got, want fleet.Snapshot) {
	if reflect.DeepEqual(got.Instances, want.Instances) {
		return
	}
	a, err := json.Marshal(got.Instances)
	require.NoError(x, err)
	b, err := json.Marshal(want.Instances)
	require.NoError(x, err)
	if len(got.Instances)+len(want.Instances) > 0 && string(a) != string(b) {
		x.violates("what %s tells of its rows does not add up: %s, not %s", got.Group, a, b)
	}
}

// disturb causes faults by people and machines. It causes only faults that the world's mode allows.
func (x *explorer) disturb() {
	kinds := []func(){x.breakCluster, x.tooLate, x.restart}
	if x.mode >= modePeople {
		kinds = append(kinds, x.harm, x.harm, x.cancel, x.cancel, x.signalAll, x.pause, x.cordon, x.unpeer)
	}
	if x.mode >= modeTerminate {
		kinds = append(kinds, x.terminate, x.terminate, x.reset, x.failTask, x.dieYoung, x.strand, x.strand, x.strand,
			x.strand, x.hang, x.hang, x.crowd, x.tooLate, x.tooLate)
	}
	if x.mode >= modeRestore {
		kinds = append(kinds, x.goBack, x.goBack, x.goBack, x.goBack)
	}
	kinds[x.rng.IntN(len(kinds))]()
}

// restart restarts a server. After the restart the server has no snapshot, and repeats no earlier call.
func (x *explorer) restart() {
	s := x.servers[x.rng.IntN(len(x.servers))]
	x.note("the server of %s is restarted", s.spec.ID)
	x.count("servers restarted")
	s.picture, s.lost = fleet.Snapshot{}, nil
}

func (x *explorer) breakCluster() {
	c := x.clusters[x.rng.IntN(len(x.clusters))]
	switch x.rng.IntN(5) {
	case 4:
		c.refusing = !c.refusing
		x.note("%s refuses us: %v", c.id, c.refusing)
	case 0:
		c.down = !c.down
		x.note("%s is down: %v", c.id, c.down)
	case 1:
		c.foreign = 1 - c.foreign
		x.note("%s has %d slices of others", c.id, c.foreign)
	default:
		c.down, c.refusing = false, false
	}
}

// harm removes one of our objects, or makes it unready.
func (x *explorer) harm() {
	if len(x.objects) == 0 {
		return
	}
	o := x.objects[x.rng.IntN(len(x.objects))]
	switch {
	case o.Terminating:
	case x.chance(50) && o.Stamped:
		if o.Ready = !o.Ready; !x.isReady(o.Attempt.Instance) {
			x.excused[o.Attempt.Instance] = true // Join may give up on this attempt
		}
		x.note("%s ready: %v", o.Attempt.ObjectName(), o.Ready)
		if x.fact(o, fleet.NotReady); o.Ready {
			x.fact(o, fleet.Registered)
		}
	case x.chance(30):
		x.note("%s: everything is deleted by hand", o.Attempt.ObjectName())
		x.harmed[o.Attempt.Instance] = true
		x.objects = slices.DeleteFunc(x.objects, func(other *object) bool { return other == o })
		x.fact(o, fleet.Lost)
	case x.chance(30):
		x.note("%s: slice and virtual node are deleted by hand", o.Attempt.ObjectName())
		x.harmed[o.Attempt.Instance] = true
		o.Slice, o.Virtual, o.Marked = false, false, false // the mark is on the virtual node
		x.fact(o, fleet.Lost)
	}
}

// unpeer removes an unused peering, as a person might do.
func (x *explorer) unpeer() {
	for _, c := range x.clusters {
		r := x.runs["provider/"+c.id]
		if r == nil || r.status != running || !c.peered || x.chance(50) || slices.ContainsFunc(x.objects,
			func(o *object) bool { return o.granted == c.id }) {
			continue
		}
		if p := r.actor.(*providerRun).p; p.Phase.Row().Runs == "" && !p.Recovering {
			x.note("%s is unpeered by hand", c.id)
			c.peered = false
		}
	}
}

func (x *explorer) isReady(name string) bool {
	for _, s := range x.servers {
		if l := x.group(s.spec.ID); l != nil && l.Find(name) != nil {
			return l.Find(name).Phase == fleet.Ready
		}
	}
	return false
}

func (x *explorer) fact(o *object, kind fleet.EventKind) {
	if !x.trouble(20) {
		x.signal("nodegroup/"+o.Attempt.Group, fleet.Fact{Instance: o.Attempt.Instance, Attempt: o.Attempt.Number,
			Kind: kind})
	}
}

// pick returns a random running workflow for which the function accept returns true. It returns nil if no such
// workflow exists.
func (x *explorer) pick(accept func(*run) bool) *run {
	var all []*run
	for _, r := range x.active {
		if accept(r) {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[x.rng.IntN(len(all))]
}

func (r *run) entity() bool {
	switch r.actor.(type) {
	case *group, *providerRun:
		return true
	}
	return false
}

func (x *explorer) cancel() {
	if r := x.pick(func(r *run) bool { return !r.entity() }); r != nil {
		if _, undoes := r.actor.(*undo); !undoes {
			x.note("cancel %s", r.id)
			x.count("cancelled")
			x.excused[r.id[strings.IndexByte(r.id, '/')+1:]] = true
			r.inbox = append(r.inbox, cancelled{})
		}
	}
}

func (x *explorer) signalAll() {
	for _, s := range x.servers {
		x.signal("nodegroup/"+s.spec.ID, "retry")
	}
}

func (x *explorer) pause() {
	s := x.servers[x.rng.IntN(len(x.servers))]
	r := x.request(s, time.Second)
	r.Paused = x.chance(30)
	x.operate(s, call{fleet.Pause, r})
}

// cordon is an operator's order to a provider. The value true cordons the provider.
type cordon bool

func (x *explorer) cordon() {
	c := x.clusters[x.rng.IntN(len(x.clusters))]
	on := cordon(x.chance(50))
	x.note("cordon %s: %v", c.id, on)
	x.signal("provider/"+c.id, on)
}
