//go:build externalgrpc

package inprocess

import (
	"maps"
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/choice"
)

// work executes the ledgers' commands in place of Temporal and the worker, until no command is due. It then schedules
// the pods and publishes the market.
func (w *world) work() {
	w.t.Helper()
	w.groups.mu.Lock()
	w.compare()
	for _, id := range slices.Sorted(maps.Keys(w.groups.by)) {
		l := w.groups.by[id]
		l.Step(fleet.GroupInput{}, w.now())
		for n := 0; n < len(l.Commands.Open); {
			if cmd := l.Commands.Open[n]; cmd.NotBefore.After(w.now()) {
				n++
			} else {
				w.carryOut(l, cmd)
			}
		}
	}
	w.groups.mu.Unlock()
	w.schedule()
	w.publish()
}

func (w *world) carryOut(l *fleet.Ledger, cmd fleet.Command) {
	result := fleet.Result{ID: cmd.ID, Outcome: fleet.OutcomeDone}
	in := fleet.GroupInput{Result: &result}
	switch e := l.Find(cmd.Instance); cmd.Kind {
	case fleet.CommandStart:
		if e != nil && cmd.Driver == fleet.ScaleOut {
			in.Views = w.scaleOut(e, cmd.Generation)
		} else if e != nil {
			in.Views = w.scaleIn(e, cmd.Generation)
		}
	case fleet.CommandOrder:
		if e != nil && cmd.Order.Deleted { // the deletion cancels a hanging instance
			in.Views = []fleet.View{view(e, cmd.Order.Generation, fleet.Released)}
		}
	case fleet.CommandDescribe:
		for _, name := range cmd.Instances {
			result.Drivers = append(result.Drivers, fleet.DriverStatus{Instance: name, Running: true})
		}
	case fleet.CommandInspect:
		for _, name := range cmd.Instances {
			result.Found = append(result.Found, w.found(l.Find(name))...)
		}
	case fleet.CommandSave: // Temporal is never restored here
	default:
		w.t.Fatalf("group %s: the worker of this package does not know the command %s", l.Group, cmd.Kind)
	}
	views := in.Views
	in.Views = nil
	l.Step(in, w.now()) // the result of the start comes before the views
	l.Step(fleet.GroupInput{Views: views}, w.now())
}

// view returns the report (fleet.View) of a driver. Each driver sends only one report, so this one is also marked as
// the last.
func view(e *fleet.Entry, generation fleet.Generation, phase fleet.Phase) fleet.View {
	return fleet.View{Instance: e.Name, Generation: generation, Sequence: 1, End: fleet.EndFinal, Phase: phase,
		Attempt: e.Attempt, Offer: e.Offer, SpecHash: e.SpecHash, BookedAt: e.BookedAt}
}

// scaleOut runs a whole scale-out and returns its views. The instance ends Ready or Failed. A hanging scale-out returns
// no views.
func (w *world) scaleOut(e *fleet.Entry, generation fleet.Generation) []fleet.View {
	if w.hanging[e.Spec.ID] {
		return nil
	}
	v := view(e, generation, fleet.Failed)
	if v.Failure = w.failing[e.Spec.ID]; v.Failure != nil {
		return []fleet.View{v}
	}
	var candidates []choice.Candidate
	for _, o := range w.market().Offers {
		if !w.dead[o.Provider] {
			candidates = append(candidates, o.Candidate())
		}
	}
	d := choice.Choose(*e.Spec, candidates, nil, choice.Rank{Name: e.Name}, w.now())
	if d.Chosen == "" {
		v.Failure = fleet.NewFailure(fleet.CodeNoOffer, "", "", "no offer fits")
		if d.Full {
			v.Failure = fleet.NewFailure(fleet.CodeNoCapacity, "", "", "all offers that fit are full")
		}
		return []fleet.View{v}
	}
	n := slices.IndexFunc(w.offers, func(o market.Offer) bool { return o.Provider == d.Chosen })
	offer := w.offers[n].Candidate().Offer
	v.Phase, v.Attempt, v.Offer = fleet.Ready, 1, &offer
	w.holds[e.Name] = hold{offer.Provider, e.Spec.Shape}
	w.addNode(virtualNode(e, w.offers[n].Provider, w.now()))
	return []fleet.View{v}
}

func (w *world) scaleIn(e *fleet.Entry, generation fleet.Generation) []fleet.View {
	if w.draining {
		return nil
	}
	delete(w.holds, e.Name)
	w.removeNode(nodeName(e.Name))
	return []fleet.View{view(e, generation, fleet.Released)}
}

// found returns the objects of a Ready instance. Every object exists.
func (w *world) found(e *fleet.Entry) []fleet.Found {
	if e == nil || e.Phase != fleet.Ready {
		return nil
	}
	return []fleet.Found{{Attempt: e.AttemptRef(), Slice: true, Virtual: true, Node: true, Marked: true, Stamped: true,
		Ready: !w.dead[e.Provider()], Booking: &fleet.Booking{Spec: *e.Spec, BookedAt: e.BookedAt}}}
}

// market returns the remaining amounts of the offers.
func (w *world) market() (m market.Market) {
	for _, o := range w.offers {
		c := o.Candidate()
		for _, h := range w.holds {
			if h.provider == o.Provider {
				c.Take(1, h.shape)
				o.Peered = true
			}
		}
		o.Free, o.Nodes = c.Free, c.Nodes
		if s := w.standing[o.Provider]; s.Closes() {
			o.Closed = s.Condition()
		}
		m.Offers = append(m.Offers, o)
	}
	return m
}
