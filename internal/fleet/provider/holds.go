package provider

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Hold is one attempt's share of a Provider's offer, from acquire to release. Key is the attempt's object name.
type Hold struct {
	Key   string              `json:"key"`
	Shape corev1.ResourceList `json:"shape,omitempty"`
	State fleet.HoldState     `json:"state"`
	Since time.Time           `json:"since"` // when it entered State
	// Changed is the provider's revision with which the hold last changed.
	Changed int64 `json:"changed,omitempty"`
	// Failure says why it was refused.
	Failure *fleet.Failure `json:"failure,omitempty"`
	// Budget bounds the making of a peering that it waits for, NetworkBudget that of its network.
	Budget        time.Duration `json:"budget,omitempty"`
	NetworkBudget time.Duration `json:"networkBudget,omitempty"`
	// Trace is who waits, see HoldRequest.Trace; only a waiting hold has it.
	Trace string `json:"trace,omitempty"`
}

func (h Hold) live() bool { return h.State == fleet.HoldWaiting || h.State == fleet.HoldGranted }

// acquire books a hold for one attempt, or answers what became of it: the same attempt gets what it got before; a
// released one stays released. The offer counts unless a newer one is known.
func (p *State) acquire(r fleet.HoldRequest, now time.Time) {
	if h, ok := p.Holds[r.Key]; ok {
		p.tell(h)
		return
	}
	if r.Offer != nil && (p.Offer == nil || !r.Offer.ReadAt.Before(p.Offer.ReadAt)) {
		p.Offer, p.free = r.Offer, nil
	}
	h := Hold{Key: r.Key, Shape: r.Shape, State: fleet.HoldWaiting, Since: now, Budget: r.Budget.Duration,
		NetworkBudget: r.NetworkBudget.Duration, Trace: r.Trace}
	if h.Failure = p.declines(r, now); h.Failure != nil {
		h.State = fleet.HoldRefused
	} else if p.Phase.Row().Grants {
		h.State = fleet.HoldGranted
	}
	p.set(h)
	if h.live() {
		p.Apply(fleet.PeeringAcquired, nil, now)
	}
	p.answer(p.Holds[r.Key])
}

// declines is why the hold is refused now; nil when it is not.
func (p *State) declines(r fleet.HoldRequest, now time.Time) *fleet.Failure {
	row := p.Phase.Row()
	switch short := p.lacks(r, now); {
	case p.isCordoned():
		return p.cordonedBy()
	case p.inForce(now) != nil:
		return p.refusal()
	case p.Standing.Closes():
		return p.unusable()
	case !row.Grants && !row.Waits:
		return p.coolingDown()
	case short != "":
		return fleet.NewFailure(fleet.CodeNoCapacity, p.ID, "", fmt.Sprintf("provider %s: %s", p.ID, short))
	}
	return nil
}

// unusable is why nothing new is held of a provider, see Standing.
func (p *State) unusable() *fleet.Failure {
	code := fleet.CodeUnreachable
	if p.Standing.Access == "" {
		code = fleet.CodeRefused
	}
	return fleet.NewFailure(code, p.ID, "", fmt.Sprintf("provider %s: %s: %s", p.ID, p.Standing.Condition(),
		p.Standing.Message))
}

func (p *State) coolingDown() *fleet.Failure {
	why, code := "its last peering failed", fleet.CodeRefused
	if p.Failure != nil {
		why, code = p.Failure.Message, p.Failure.Code
	}
	return fleet.NewFailure(code, p.ID, "", fmt.Sprintf("provider %s is in %s: %s", p.ID, p.Phase, why))
}

// release gives a hold back and remembers the key for an hour, of an unknown one too, so that a late acquire holds
// nothing.
func (p *State) release(key string, now time.Time) {
	h := p.Holds[key]
	if h.State == fleet.HoldReleased {
		return
	}
	p.set(Hold{Key: key, State: fleet.HoldReleased, Since: now})
	p.Commands.Drop(func(c fleet.Command) bool { return c.Kind == fleet.CommandAnswer && c.Answer.Key == key })
	if h.live() && p.Live() == 0 {
		p.Apply(fleet.PeeringEmptied, nil, now)
	}
}

// answer tells the driver what ends its wait.
func (p *State) answer(h Hold) {
	if h.State != fleet.HoldWaiting {
		p.tell(h)
	}
}

// tell tells the driver the hold's state, also that it waits; for a standby's no driver waits.
func (p *State) tell(h Hold) {
	if fleet.IsStandby(h.Key) {
		return
	}
	p.Commands.Drop(func(c fleet.Command) bool { return c.Kind == fleet.CommandAnswer && c.Answer.Key == h.Key })
	p.Commands.Add(fleet.Command{
		Kind: fleet.CommandAnswer, Driver: fleet.ScaleOut, Instance: fleet.InstanceOfKey(h.Key),
		Answer: &fleet.Answer{Key: h.Key, Provider: p.ID, State: h.State, Failure: h.Failure},
	})
}

func (p *State) set(h Hold) {
	if p.Holds == nil {
		p.Holds = map[string]Hold{}
	}
	if h.State != fleet.HoldWaiting {
		h.Trace = ""
	}
	p.Revision++
	h.Changed = p.Revision
	old := p.Holds[h.Key]
	p.Holds[h.Key] = h
	switch {
	case !old.live() && h.live():
		subtract(p.free, h.Shape)
	case old.live() != h.live():
		p.free = nil
	}
}

// settle ends the wait of every waiting hold.
func (p *State) settle(state fleet.HoldState, why *fleet.Failure, now time.Time) {
	for _, key := range p.LiveHolds() {
		h := p.Holds[key]
		if h.State != fleet.HoldWaiting {
			continue
		}
		h.State, h.Since = state, now
		if state == fleet.HoldRefused {
			if h.Failure = why; why == nil {
				text := fmt.Sprintf("provider %s: still removing the previous peering", p.ID)
				h.Failure = fleet.NewFailure(fleet.CodeRefused, p.ID, "", text)
			}
		}
		p.set(h)
		p.answer(h)
	}
}

// Trace is that of the first hold that waits: of whom a peering is made for. "" when nobody waits, or it is not traced.
func (p *State) Trace() string {
	for _, key := range p.LiveHolds() {
		if trace := p.Holds[key].Trace; trace != "" {
			return trace
		}
	}
	return ""
}

// Live is the number of holds that wait or are granted.
func (p *State) Live() int {
	n := 0
	for _, h := range p.Holds {
		if h.live() {
			n++
		}
	}
	return n
}

// nodeHolds are the LiveHolds of attempts, and standbys what became of the others, but for those that were released.
func (p *State) nodeHolds() []string {
	return slices.DeleteFunc(p.LiveHolds(), fleet.IsStandby)
}

func (p *State) standbys() map[string]fleet.HoldState {
	states := map[string]fleet.HoldState{}
	for key, h := range p.Holds {
		if fleet.IsStandby(key) && h.State != fleet.HoldReleased {
			states[key] = h.State
		}
	}
	return states
}

// LiveHolds are the keys of the holds that wait or are granted, in order.
func (p *State) LiveHolds() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.Holds)), func(key string) bool { return !p.Holds[key].live() })
}

// Free is what the newest offer has left after the live holds; nil without an offer.
func (p *State) Free() corev1.ResourceList {
	if p.Offer == nil {
		return nil
	}
	if p.free == nil {
		p.free = p.Offer.Lendable.DeepCopy()
		for _, key := range p.LiveHolds() {
			subtract(p.free, p.Holds[key].Shape)
		}
	}
	return p.free
}

// subtract takes a shape away from what is free. Resources that free does not name are not limited by it.
func subtract(free, shape corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		if left, ok := free[name]; ok {
			left.Sub(shape[name])
			free[name] = left
		}
	}
}

// lacks is a sentence when the hold does not fit in what is free, or nothing is offered any more. A standby's takes no
// node's place.
func (p *State) lacks(r fleet.HoldRequest, now time.Time) string {
	if p.Offer == nil {
		return "it has made no offer"
	}
	if p.Offer.Expired(now) {
		return "its offer expired at " + p.Offer.Expires.UTC().Format(time.RFC3339)
	}
	if p.Offer.MaxNodes > 0 && !fleet.IsStandby(r.Key) && len(p.nodeHolds()) >= p.Offer.MaxNodes {
		return fmt.Sprintf("all %d nodes it offers are taken", p.Offer.MaxNodes)
	}
	return fleet.Lacks(r.Shape, p.Offer.Lendable, p.Free())
}

// sweepHolds forgets refused and released holds an hour after.
func (p *State) sweepHolds(now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(p.Holds)) {
		if h := p.Holds[key]; !h.live() && now.Sub(h.Since) > tombstoneTTL {
			delete(p.Holds, key)
		}
	}
}
