package fleet

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// HoldState is what became of a hold.
type HoldState string

// The states of a hold.
const (
	HoldWaiting  HoldState = "waiting" // the peering is on its way
	HoldGranted  HoldState = "granted"
	HoldRefused  HoldState = "refused"
	HoldReleased HoldState = "released"
	HoldUnknown  HoldState = "" // the provider has never heard of it, or has forgotten
)

// Hold is one attempt's share of a Provider's offer, from acquire to release. Key is the attempt's object name.
type Hold struct {
	Key   string              `json:"key"`
	Shape corev1.ResourceList `json:"shape"`
	State HoldState           `json:"state"`
	Since time.Time           `json:"since"` // when it entered State
	// Failure and Free say why it was refused and what is free.
	Failure *Failure            `json:"failure,omitempty"`
	Free    corev1.ResourceList `json:"free,omitempty"`
}

// ProviderState is a Provider: its newest offer, its holds and its peering. Every change is all or nothing.
type ProviderState struct {
	ID    string       `json:"id"`
	Phase PeeringPhase `json:"phase"`
	Since time.Time    `json:"since"`
	// Offer is the newest one seen; its linger and unpeer policy rule.
	Offer *Offer `json:"offer,omitempty"`
	// Holds are kept by key: live ones, and for an hour refused and released ones, so that a late acquire of the same
	// attempt gets the same answer (tombstones).
	Holds map[string]Hold `json:"holds,omitempty"`
	// Failure is why the peering last failed.
	Failure *Failure `json:"failure,omitempty"`
	// Run numbers the driving workflows; a report of an earlier run is stale.
	Run      int   `json:"run,omitempty"`
	Sequence int64 `json:"sequence"`
	// KeepUntil forbids removal before then: after a recovery nothing is removed for a while.
	KeepUntil time.Time `json:"keepUntil,omitempty"`
	Failures  int       `json:"failures,omitempty"` // in a row; lengthens CoolOff
}

// Times of a peering's life.
const (
	tombstoneTTL   = time.Hour
	coolOffFirst   = 15 * time.Second
	coolOffMax     = 10 * time.Minute
	RemovalWait    = 60 * time.Second // how long an acquire waits for a removal under way
	EstablishBound = 90 * time.Second
	inUseRetry     = 5 * time.Minute
	removalRetry   = time.Minute
)

// NewProviderState is a Provider nobody has a peering with.
func NewProviderState(id string, now time.Time) ProviderState {
	return ProviderState{ID: id, Phase: Absent, Since: now, Holds: map[string]Hold{}}
}

// Live is the number of holds that wait or are granted.
func (p *ProviderState) Live() int {
	n := 0
	for _, key := range p.keys() {
		if p.Holds[key].live() {
			n++
		}
	}
	return n
}

// LiveHolds are the keys of the holds that wait or are granted, in order.
func (p *ProviderState) LiveHolds() []string {
	return slices.DeleteFunc(p.keys(), func(key string) bool { return !p.Holds[key].live() })
}

// keys are the holds' keys in order: a workflow must not depend on a map's.
func (p *ProviderState) keys() []string { return slices.Sorted(maps.Keys(p.Holds)) }

func (h Hold) live() bool { return h.State == HoldWaiting || h.State == HoldGranted }

// Acquire books a hold for one attempt and returns it: granted, waiting or refused. Idempotent by key: the same attempt
// gets what it got before; a released one stays released. The offer becomes the newest.
func (p *ProviderState) Acquire(key string, shape corev1.ResourceList, offer Offer, now time.Time) Hold {
	if h, ok := p.Holds[key]; ok {
		return h
	}
	p.Offer = &offer
	h := Hold{Key: key, Shape: shape, State: HoldWaiting, Since: now}
	row := p.Phase.Row()
	free, short := p.lacks(shape)
	switch {
	case !row.Grants && !row.Waits:
		h.State, h.Failure = HoldRefused, p.coolingDown()
	case short != "":
		h.State, h.Free = HoldRefused, free
		h.Failure = NewFailure(CodeNoCapacity, p.ID, "", fmt.Sprintf("provider %s: %s", p.ID, short))
	case row.Grants:
		h.State = HoldGranted
	}
	if p.Holds == nil {
		p.Holds = map[string]Hold{}
	}
	p.Holds[key] = h
	if h.live() {
		p.Apply(PeeringAcquired, nil, now)
	}
	return p.Holds[key]
}

func (p *ProviderState) coolingDown() *Failure {
	why := "its last peering failed"
	code := CodeRefused
	if p.Failure != nil {
		why, code = p.Failure.Message, p.Failure.Code
	}
	return NewFailure(code, p.ID, "", fmt.Sprintf("provider %s is in %s: %s", p.ID, p.Phase, why))
}

// Release gives a hold back and leaves a tombstone; of an unknown one too, so that a late acquire is refused. Idempotent.
func (p *ProviderState) Release(key string, now time.Time) {
	h, ok := p.Holds[key]
	if ok && h.State == HoldReleased {
		return
	}
	if p.Holds == nil {
		p.Holds = map[string]Hold{}
	}
	p.Holds[key] = Hold{Key: key, State: HoldReleased, Since: now}
	if h.live() && p.Live() == 0 {
		p.Apply(PeeringEmptied, nil, now)
	}
}

// Free is what the newest offer has left after the live holds; nil without an offer.
func (p *ProviderState) Free() corev1.ResourceList {
	if p.Offer == nil {
		return nil
	}
	free := p.Offer.Lendable.DeepCopy()
	for _, key := range p.keys() {
		h := p.Holds[key]
		if !h.live() {
			continue
		}
		for _, name := range sortedNames(h.Shape) {
			if left, ok := free[name]; ok {
				left.Sub(h.Shape[name])
				free[name] = left
			}
		}
	}
	return free
}

// lacks returns what is free, and a sentence when the shape does not fit in it.
func (p *ProviderState) lacks(shape corev1.ResourceList) (corev1.ResourceList, string) {
	free := p.Free()
	if p.Offer.MaxNodes > 0 && p.Live() >= p.Offer.MaxNodes {
		return corev1.ResourceList{}, fmt.Sprintf("all %d nodes it lends are taken", p.Offer.MaxNodes)
	}
	for _, name := range sortedNames(shape) {
		want := shape[name]
		have, limited := free[name]
		if !limited && name == corev1.ResourceEphemeralStorage {
			continue // an offer that does not speak of ephemeral storage does not limit it
		}
		if want.Cmp(have) > 0 {
			return free, fmt.Sprintf("needs %s %s, %s is free", name, want.String(), have.String())
		}
	}
	return free, ""
}

func sortedNames(l corev1.ResourceList) []corev1.ResourceName { return slices.Sorted(maps.Keys(l)) }

// Apply is the only way a peering changes phase. It returns the move; an ignored one changed nothing.
func (p *ProviderState) Apply(ev PeeringEvent, why *Failure, now time.Time) PeeringMove {
	m, ok := p.Phase.Row().Moves[ev]
	if !ok || m.Ignored {
		return PeeringMove{Ignored: true}
	}
	if m.RefuseWaiting {
		p.settle(HoldRefused, why, now)
	}
	if m.Grant {
		p.settle(HoldGranted, nil, now)
	}
	switch ev {
	case PeeringFailed:
		p.Failure = why
		switch p.Phase {
		case Establishing:
			p.Failures++
		case Removing: // what failed at once would fail at once again
			p.KeepUntil = now.Add(removalRetry)
		}
	case PeeringDone:
		if p.Phase == Establishing || p.Phase == Repairing {
			p.Failure, p.Failures = nil, 0
		}
	case PeeringInUse:
		p.KeepUntil = now.Add(inUseRetry)
	}
	next := m.To
	if m.ToEmpty != "" && p.Live() == 0 {
		next = m.ToEmpty
	}
	if next != "" {
		p.Phase, p.Since = next, now
	}
	if p.Phase == Absent && p.Live() > 0 { // acquired while the old peering was being removed
		p.Phase, p.Since = Establishing, now
	}
	return m
}

func (p *ProviderState) settle(state HoldState, why *Failure, now time.Time) {
	for _, key := range p.keys() {
		h := p.Holds[key]
		if h.State != HoldWaiting {
			continue
		}
		h.State, h.Since = state, now
		if state == HoldRefused {
			h.Failure = why
			if why == nil {
				h.Failure = NewFailure(CodeRefused, p.ID, "", fmt.Sprintf("provider %s: still removing the previous peering", p.ID))
			}
		}
		p.Holds[key] = h
	}
}

// NextTimer is when PeeringElapsed is due; zero when the phase has no end of its own.
func (p *ProviderState) NextTimer() time.Time {
	switch p.Phase {
	case CoolOff:
		d := coolOffFirst
		for range min(p.Failures-1, 6) {
			d *= 2
		}
		return p.Since.Add(min(d, coolOffMax))
	case Lingering:
		linger := DefaultLinger
		if p.Offer != nil {
			if p.Offer.Unpeer == UnpeerNever {
				return time.Time{}
			}
			linger = p.Offer.Linger()
		}
		due := p.Since.Add(linger)
		if due.Before(p.KeepUntil) {
			return p.KeepUntil
		}
		return due
	case Removing:
		var first time.Time
		for _, key := range p.keys() {
			h := p.Holds[key]
			if h.State == HoldWaiting && (first.IsZero() || h.Since.Before(first)) {
				first = h.Since
			}
		}
		if first.IsZero() {
			return first
		}
		return first.Add(RemovalWait)
	default:
		return time.Time{}
	}
}

// Sweep forgets refused and released holds an hour after.
func (p *ProviderState) Sweep(now time.Time) {
	for _, key := range p.keys() {
		if h := p.Holds[key]; !h.live() && now.Sub(h.Since) > tombstoneTTL {
			delete(p.Holds, key)
		}
	}
}
