package provider

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Hold records one attempt's share of a Provider's offer, from acquire to release. Key is the attempt's object name.
type Hold struct {
	Key   string              `json:"key"`
	Shape corev1.ResourceList `json:"shape,omitempty"`
	State fleet.HoldState     `json:"state"`
	Since time.Time           `json:"since"` // the time at which it entered State
	// Changed is the provider's revision at which the hold last changed.
	Changed int64 `json:"changed,omitempty"`
	// Failure is the reason for the refusal.
	Failure *fleet.Failure `json:"failure,omitempty"`
	// Budget bounds the time to establish the peering that the hold waits for, and NetworkBudget the time to set up the
	// peering's network.
	Budget        time.Duration `json:"budget,omitempty"`
	NetworkBudget time.Duration `json:"networkBudget,omitempty"`
	// Trace identifies the waiting caller, see HoldRequest.Trace. Only a waiting hold has a trace.
	Trace string `json:"trace,omitempty"`
}

// live reports whether the hold waits or is granted.
func (h Hold) live() bool { return h.State == fleet.HoldWaiting || h.State == fleet.HoldGranted }

// acquire books a hold for one attempt. For a repeated request it sends the existing hold's state to the driver; a
// released hold stays released. The request's offer replaces an older offer.
func (p *State) acquire(r fleet.HoldRequest, now time.Time) {
	if h, ok := p.Holds[r.Key]; ok {
		p.sendAnswer(h)
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
	p.answerIfDecided(p.Holds[r.Key])
}

// declines returns the failure with which the provider refuses a hold now, or nil if it does not refuse the hold.
func (p *State) declines(r fleet.HoldRequest, now time.Time) *fleet.Failure {
	row := p.Phase.Row()
	switch short := p.lacks(r, now); {
	case p.isCordoned():
		return p.cordonedBy()
	case p.presentRefusal(now) != nil:
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

// unusable returns the failure of a hold that is refused because Standing closes the provider.
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

// release releases a hold and keeps its key for an hour, so that a late acquire books nothing. If no hold has this
// key, release records the key as released.
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

// answerIfDecided sends the hold's state to the driver unless the hold is waiting.
func (p *State) answerIfDecided(h Hold) {
	if h.State != fleet.HoldWaiting {
		p.sendAnswer(h)
	}
}

// sendAnswer sends the hold's state to the driver, even while the hold is waiting. A standby's hold has no driver.
func (p *State) sendAnswer(h Hold) {
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

// settle changes all waiting holds to the given state.
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
		p.answerIfDecided(h)
	}
}

// Trace returns the trace of the first waiting hold that has one, because the peering is established for that hold. It
// returns "" when no waiting hold has a trace.
func (p *State) Trace() string {
	for _, key := range p.LiveHolds() {
		if trace := p.Holds[key].Trace; trace != "" {
			return trace
		}
	}
	return ""
}

// Live returns the number of holds that wait or are granted.
func (p *State) Live() int {
	n := 0
	for _, h := range p.Holds {
		if h.live() {
			n++
		}
	}
	return n
}

// nodeHolds returns the keys of the attempts' live holds, without standbys.
func (p *State) nodeHolds() []string {
	return slices.DeleteFunc(p.LiveHolds(), fleet.IsStandby)
}

// standbys returns the state of each standby's hold that has not been released.
func (p *State) standbys() map[string]fleet.HoldState {
	states := map[string]fleet.HoldState{}
	for key, h := range p.Holds {
		if fleet.IsStandby(key) && h.State != fleet.HoldReleased {
			states[key] = h.State
		}
	}
	return states
}

// LiveHolds returns the sorted keys of the holds that wait or are granted.
func (p *State) LiveHolds() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.Holds)), func(key string) bool { return !p.Holds[key].live() })
}

// Free returns the resources of the newest offer that live holds do not use, or nil without an offer.
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

// subtract subtracts shape from free in place. A resource without an entry in free is unlimited.
func subtract(free, shape corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(shape)) {
		if left, ok := free[name]; ok {
			left.Sub(shape[name])
			free[name] = left
		}
	}
}

// lacks returns the reason why the offer cannot serve the hold: it is missing, has expired, or has too little free
// capacity. It returns "" when the hold fits. A standby's hold does not count as a node.
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

// sweepHolds removes refused and released holds after an hour.
func (p *State) sweepHolds(now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(p.Holds)) {
		if h := p.Holds[key]; !h.live() && now.Sub(h.Since) > tombstoneTTL {
			delete(p.Holds, key)
		}
	}
}
