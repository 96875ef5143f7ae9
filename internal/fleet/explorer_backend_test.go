package fleet_test

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// object holds the objects of one attempt: its slice, and flags for the objects that depend on the slice.
type object struct {
	fleet.Found
	granted string // the provider that has granted the slice
}

// cluster is a provider cluster: its offer, and the peering between it and the consumer.
type cluster struct {
	id     string
	nodes  int // number of instances that fit
	price  int // price of each instance
	peered bool
	down   bool
	// refusing reports that the provider's administrators refuse this consumer.
	refusing bool
	foreign  int // number of slices of other users
}

func contains(all []string, one string) bool { return slices.Contains(all, one) }

func (x *explorer) provider(id string) *cluster {
	for _, c := range x.clusters {
		if c.id == id {
			return c
		}
	}
	x.violates("provider %q does not exist", id)
	return &cluster{id: id}
}

func (x *explorer) list(of func(fleet.Attempt) bool) (found []fleet.Found) {
	for _, o := range x.objects {
		if of(o.Attempt) {
			f := o.Found
			if !f.Virtual { // the mark is on the virtual node
				f.Booking = nil
			}
			found = append(found, f)
		}
	}
	return found
}

func (x *explorer) object(at fleet.Attempt) *object {
	for _, o := range x.objects {
		if o.Attempt.ObjectName() == at.ObjectName() {
			return o
		}
	}
	return nil
}

func (x *explorer) offer(provider string) *fleet.Offer {
	linger := int64(5)
	n := x.provider(provider).nodes
	return &fleet.Offer{Name: provider, Provider: provider, Lendable: lendable(n), LingerSeconds: &linger,
		Price: float64(x.provider(provider).price)}
}

func (x *explorer) acquire(s *fleet.InstanceSpec, at fleet.Attempt, o *fleet.Offer) fleet.HoldRequest {
	return fleet.HoldRequest{
		Kind: fleet.HoldAcquire, Key: at.ObjectName(), Shape: s.Shape, Offer: o,
		Budget: metav1.Duration{Duration: 90 * time.Second},
	}
}

// tell is the activity that delivers messages. It has no record of earlier deliveries.
type tell struct {
	group, provider string
	view            *fleet.View
	holds           []fleet.HoldRequest
	report          *fleet.PeeringReport
	result          any
	local           bool // a local activity: the workflow does not wait for its end after a cancellation
}

func (t *tell) pass(x *explorer, a *act) (any, bool) {
	if a.cancelled && t.local && x.chance(50) { // the acquire may be delivered without the view
		for _, h := range t.holds {
			x.calledOff[h.Key] = true
		}
		if x.chance(50) {
			t.deliver(x)
		} else if x.trouble(60) {
			x.haunt(t)
		}
		ev := t.result.(fleet.Event)
		ev.Kind, ev.Offer = fleet.Cancelled, nil
		return ev, true
	}
	return t.result, t.deliver(x)
}

func (t *tell) deliver(x *explorer) bool {
	all := true
	if t.view != nil {
		all = !x.trouble(5) && x.signal("nodegroup/"+t.group, []fleet.View{*t.view})
	}
	if len(t.holds) > 0 {
		if x.trouble(5) {
			return false
		}
		id := "provider/" + t.provider
		if !x.signal(id, t.holds) {
			x.start(id, true, x.newProvider(t.provider), t.holds)
		}
	}
	if t.report != nil {
		x.signal("provider/"+t.provider, *t.report)
	}
	return all
}

// offers is the result of Discover: the published providers with capacity, and whether other providers are full.
type offers struct {
	free []string
	full bool
}

type discover struct {
	spec    fleet.InstanceSpec
	refused []string
}

func (d *discover) pass(x *explorer, a *act) (any, bool) {
	if a.cancelled && x.chance(80) {
		return fleet.Event{Kind: fleet.Cancelled, Step: fleet.StepDiscover}, true
	}
	var out offers
	for _, c := range x.clusters {
		if contains(d.refused, c.id) {
			continue
		}
		held := 0
		if r := x.runs["provider/"+c.id]; r != nil && r.memo != nil {
			memo := r.memo.(fleet.ProviderSnapshot)
			if held = len(memo.Holds); memo.Refusing != nil {
				continue
			}
		}
		if held < c.nodes {
			out.free = append(out.free, c.id)
		} else {
			out.full = true
		}
	}
	return out, true
}

type join struct {
	at      fleet.Attempt
	booking fleet.Booking
	view    fleet.View
	ev      fleet.Event
}

func (j *join) end(kind fleet.EventKind) (any, bool) {
	ev := j.ev
	if ev.Kind = kind; kind != fleet.Done {
		ev.Failure = fleet.NewFailure(fleet.CodeRefused, j.at.Provider.ID, "join", "join "+string(kind))
	}
	return ev, true
}

func (j *join) pass(x *explorer, a *act) (any, bool) {
	o := x.object(j.at)
	c := x.provider(j.at.Provider.ID)
	ready := o != nil && o.granted == c.id && o.Marked && o.Stamped && o.Ready && !o.Terminating
	switch {
	case ready:
		v := j.view.Joined()
		if !x.signal("nodegroup/"+j.at.Group, []fleet.View{v}) {
			return nil, false
		}
		return j.end(fleet.Done)
	case o != nil && o.granted != c.id: // granted for another run of the driver
		return j.end(fleet.Refused)
	case a.cancelled && (a.tries < 2 || x.chance(60)):
		return j.end(fleet.Cancelled)
	case x.trouble(3):
		return j.end(fleet.Refused)
	case a.tries > 40:
		return j.end(fleet.GaveUp)
	case !c.peered:
		if !x.trouble(5) {
			broken := []fleet.HoldRequest{{Kind: fleet.HoldBroken, Key: j.at.ObjectName()}}
			(&tell{provider: c.id, holds: broken}).deliver(x)
		}
	case c.down || o != nil && o.Terminating:
	case c.refusing && (o == nil || !o.Virtual):
		refusing := []fleet.HoldRequest{{Kind: fleet.HoldRefusing, Key: j.at.ObjectName(), Refusing: x.refusal()}}
		if !(&tell{provider: c.id, holds: refusing}).deliver(x) {
			return nil, false
		}
		return j.end(fleet.Refused)
	case o == nil && !j.booked(x):
	case o == nil:
		x.checkReleased(j.at)
		x.note("%s is made on %s", j.at.ObjectName(), c.id)
		x.objects = append(x.objects, &object{Found: fleet.Found{Attempt: j.at, Booking: &j.booking, Slice: true},
			granted: c.id})
	case !o.Slice:
		o.Slice = true
	case !o.Virtual:
		o.Virtual = true
	case !o.Node:
		o.Node = true
	case !o.Ready:
		o.Ready = true
	default:
		return j.finish(x, o)
	}
	return nil, false
}

// booked reports whether the instance's group confirms the instance. Otherwise it sends the view to the group, which
// answers with a stop. It models the first action of the activity Join.
func (j *join) booked(x *explorer) bool {
	r := x.runs["nodegroup/"+j.at.Group]
	if r == nil || r.status != running || r.memo == nil {
		return false
	}
	s := r.memo.(fleet.Snapshot)
	if s.Position().Behind(x.positions[j.at.Group]) {
		return false
	}
	if slices.ContainsFunc(s.Instances, func(row fleet.InstanceView) bool {
		return row.Name == j.at.Instance && row.State != fleet.StateDeleting &&
			(row.Phase == fleet.Pending || row.Phase.Growing())
	}) {
		return true
	}
	v := j.view
	v.Sequence--
	x.signal("nodegroup/"+j.at.Group, []fleet.View{v})
	return false
}

// savePosition stores a group's position outside of Temporal, unless the position there is newer.
func (x *explorer) savePosition(c *command) {
	if !c.position.Behind(x.positions[c.group]) {
		x.positions[c.group] = c.position
	}
}

// checkReleased checks that no object of a released instance is made whose id was on a Node (invariant I2). It makes an
// exception for a restored group that was terminated or reset before it received a position from before the restore: it
// does not know that it lacks a release.
func (x *explorer) checkReleased(at fleet.Attempt) {
	l, epoch := x.group(at.Group), x.forgotten[at.Instance]
	unaware := l != nil && l.Reverted == "" && fleet.EpochBefore(epoch, l.Epoch)
	if epoch != "" && x.carried[at.Instance] && !unaware {
		x.violates("the id of %s, which was released, comes back as %s", at.Instance, at.ObjectName())
	}
}

// forget records the instances that a group has released, when Temporal is restored from an old copy. It skips a group
// that is still saving its position.
func (x *explorer) forget(l *fleet.Ledger) {
	if l == nil || l.Commands.Has(fleet.CommandSave) {
		return
	}
	for _, e := range l.Entries {
		if e.Leaving {
			x.forgotten[e.Name] = l.Epoch
		}
	}
	for _, was := range l.Released {
		x.forgotten[was.Name] = l.Epoch
	}
}

// finish marks and stamps the Node, unless another attempt of the instance is marked or stamped. This is a rule of
// the backend's contract. An attempt that is marked, stamped and not lost represents the instance.
func (j *join) finish(x *explorer, o *object) (any, bool) {
	waits := false
	for _, other := range x.objects {
		if other == o || other.Attempt.Instance != j.at.Instance {
			continue
		}
		if other.Marked && other.Stamped && !other.Terminating {
			return j.end(fleet.Refused)
		}
		waits = waits || other.Marked || other.Stamped
	}
	switch {
	case waits:
	case !o.Marked:
		o.Marked = true
	default:
		x.stamp(o)
	}
	return nil, false
}

func (x *explorer) stamp(o *object) {
	o.Stamped = true
	x.carried[o.Attempt.Instance] = true
	for _, other := range x.objects {
		if other != o && other.Attempt.Instance == o.Attempt.Instance && other.Stamped {
			x.violates("providerID of %s is on two Nodes", o.Attempt.Instance)
		}
	}
	x.fact(o, fleet.Registered)
}

type drain struct {
	at fleet.Attempt
	ev fleet.Event
}

func (d *drain) pass(x *explorer, a *act) (any, bool) {
	ev := d.ev
	if o := x.object(d.at); o != nil && o.Node {
		x.destroys(o, "drain")
		o.Marked = false
		switch {
		case a.cancelled && x.chance(60):
			ev.Kind = fleet.Cancelled
			return ev, true
		case a.tries > 20:
			ev.Kind = fleet.GaveUp
			return ev, true
		case x.trouble(3):
			ev.Kind = fleet.Refused
			return ev, true
		case x.chance(50):
			return nil, false
		}
	}
	return ev, true
}

// takeBack is the step Return. It removes the node, then the slice, and last the hold.
type takeBack struct {
	at   fleet.Attempt
	view *fleet.View
	ev   fleet.Event
}

func (t *takeBack) pass(x *explorer, a *act) (any, bool) {
	if a.cancelled && x.chance(60) {
		ev := t.ev
		ev.Kind = fleet.Cancelled
		return ev, true
	}
	o := x.object(t.at)
	if o != nil && t.at.Provider.ID != "" && t.at.Provider.ID != o.granted {
		// After a driver was cancelled, Temporal accepts its workflow id again. A late start of this driver may then
		// choose another provider.
		if o = nil; x.mode < modeTerminate && !x.excused[t.at.Instance] {
			x.violates("%s is returned from %s, where it does not exist", t.at.ObjectName(), t.at.Provider.ID)
		}
	}
	if o != nil {
		x.destroys(o, "return")
		o.Marked, o.Virtual, o.Node, o.Ready, o.Stamped, o.Terminating = false, false, false, false, false, true
		if x.provider(o.granted).down || x.chance(30) {
			return nil, false
		}
		x.objects = slices.DeleteFunc(x.objects, func(other *object) bool { return other == o })
	}
	told := tell{}
	if t.at.Provider.ID != "" {
		told.provider = t.at.Provider.ID
		told.holds = []fleet.HoldRequest{{Kind: fleet.HoldRelease, Key: t.at.ObjectName()}}
	}
	if t.view != nil {
		v := t.view.Returned()
		told.group, told.view = t.at.Group, &v
	}
	return t.ev, told.deliver(x)
}

// refusal returns the refusal of a provider. The refusal sometimes expires automatically.
func (x *explorer) refusal() *fleet.ProviderRefusal {
	r := &fleet.ProviderRefusal{Kind: fleet.RefusingCordoned, Reason: "cordoned"}
	if x.chance(50) {
		r.Kind, r.Until = fleet.RefusingRemoved, x.now.Add(time.Duration(1+x.rng.IntN(600))*time.Second)
	}
	return r
}

// repeer makes or removes a peering. It reports success itself. If it fails, its workflow reports the failure.
type repeer struct {
	in      fleet.PeeringInput
	removes bool
}

func (p *repeer) pass(x *explorer, a *act) (any, bool) {
	id := p.in.Provider.ID
	c := x.provider(id)
	report := fleet.PeeringReport{Run: p.in.Run, Event: fleet.PeeringDone}
	r := x.runs["provider/"+id]
	if r == nil || r.status != running || r.memo == nil {
		return nil, r == nil || r.status != running
	}
	switch {
	case r.memo.(fleet.ProviderSnapshot).Over(p.in.Run):
		return nil, true
	case a.cancelled && x.chance(60), !p.removes && a.tries > 30, x.trouble(3):
		code := fleet.CodeTimeout
		return &fleet.PeeringReport{Run: p.in.Run, Event: fleet.PeeringFailed, Failure: fleet.NewFailure(code, id, "",
			"peering failed")}, true
	case c.down || x.chance(50):
		return nil, false
	case !p.removes && c.refusing:
		return &fleet.PeeringReport{Run: p.in.Run, Event: fleet.PeeringRefused, Refusing: x.refusal(),
			Failure: fleet.NewFailure(fleet.CodeRefused, id, "", "it refuses")}, true
	case !p.removes:
		c.peered = true
	case c.foreign > 0 || len(x.list(func(at fleet.Attempt) bool { return at.Provider.ID == id })) > 0:
		report.Event = fleet.PeeringInUse
	default:
		x.removesPeering(c, p.in.Run)
		c.peered = false
		if c.refusing {
			report.Refusing = x.refusal()
		}
	}
	if x.trouble(5) {
		return nil, false
	}
	told := &tell{provider: id, report: &report}
	if x.trouble(70) { // such reports are rare
		x.haunt(told)
	}
	told.deliver(x)
	return nil, true
}
