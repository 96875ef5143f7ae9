package comparison

import (
	"cmp"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Evidence contains the findings of one round about one provider.
type Evidence struct {
	Provider string             `json:"provider"`
	Access   fleet.Access       `json:"access,omitempty"`
	Tenant   fleet.RefusingKind `json:"tenant,omitempty"`
	// Absent lists the attempts whose slice exists in the consumer but not at the provider.
	Absent []string `json:"absent,omitempty"`
	// Network describes the fault of the network; "" means no fault.
	Network string `json:"network,omitempty"`
	// Heard contains the time at which each end of the network last measured that it reaches the other end, or ""
	// while it does not reach the other end. These times are only compared with each other, never with our clock.
	// HeardAt contains the time of the round that first read each value. Quiet is the longest time for which a value
	// may stay unchanged.
	Heard   []string      `json:"heard,omitempty"`
	HeardAt []time.Time   `json:"heardAt,omitempty"`
	Quiet   time.Duration `json:"quiet,omitempty"`
	// Broken is the time since which consecutive rounds have found that the network does not work, or zero while it
	// works. Here reports that our own gateway does not run, so that no provider is to blame.
	Broken time.Time `json:"broken,omitzero"`
	Here   bool      `json:"here,omitempty"`
	// Fault describes the fault of the peering on this cluster.
	Fault fleet.Fault `json:"fault,omitzero"`
	// Message explains Access and Tenant, in the provider's words or in ours.
	Message string `json:"message,omitempty"`
	// Stale reports that the provider's entity could not be read in this round, or that the round had no time to
	// check the provider. The evidence is then from an earlier round, and no decision uses it.
	Stale bool `json:"stale,omitempty"`
	// Since is the start of the first of the consecutive rounds that found this Access and Tenant. For a provider
	// that has become silent, it is the start of the last round in which the provider answered.
	Since time.Time `json:"since,omitzero"`
}

// Outlook contains the findings of one round of the observer about all providers that it checked.
type Outlook struct {
	At       time.Time  `json:"at"`
	Evidence []Evidence `json:"evidence,omitempty"`
	// Isolated reports that no provider with credentials answers. Then this cluster itself is probably cut off.
	Isolated bool `json:"isolated,omitempty"`
	// IsolatedSince is the start of the present or last isolation. IsolatedUntil is the time of the last round that
	// found this isolation.
	IsolatedSince time.Time `json:"isolatedSince,omitzero"`
	IsolatedUntil time.Time `json:"isolatedUntil,omitzero"`
	// Sentenced is the time at which groups were last notified of lost instances.
	Sentenced time.Time `json:"sentenced,omitzero"`
	// Lost lists these instances. A group refuses a loss if, by its own clock, the Node has been not ready for less
	// than budgets.unready.
	Lost []string `json:"lost,omitempty"`
}

// Of returns the evidence about a provider, or the zero Evidence when the round did not check it.
func (o Outlook) Of(provider string) Evidence {
	for _, e := range o.Evidence {
		if e.Provider == provider {
			return e
		}
	}
	return Evidence{Provider: provider}
}

// Answered reports whether any provider answered. A provider that refuses our credentials has answered.
func (o Outlook) Answered() bool {
	return slices.ContainsFunc(o.Evidence, Evidence.answered)
}

// Compare orders evidence by provider.
func (e Evidence) Compare(o Evidence) int { return cmp.Compare(e.Provider, o.Provider) }

func (e Evidence) answered() bool {
	return e.Access == fleet.AccessGranted || e.Access == fleet.AccessRefused
}

// granted reports whether this round found that the provider accepts our credentials.
func (e Evidence) granted() bool { return e.Access == fleet.AccessGranted && !e.Stale }

// Silent reports whether any provider did not answer.
func (o Outlook) Silent() bool {
	return slices.ContainsFunc(o.Evidence, func(e Evidence) bool { return e.Access == fleet.AccessSilent })
}

// Later returns the outlook with d added to all its times.
func (o Outlook) Later(d time.Duration) Outlook {
	o.Evidence = slices.Clone(o.Evidence)
	move := func(times ...*time.Time) {
		for _, t := range times {
			if !t.IsZero() {
				*t = t.Add(d)
			}
		}
	}
	move(&o.At, &o.IsolatedSince, &o.IsolatedUntil, &o.Sentenced)
	for n := range o.Evidence {
		e := &o.Evidence[n]
		e.HeardAt = slices.Clone(e.HeardAt)
		move(&e.Broken, &e.Since)
		for i := range e.HeardAt {
			move(&e.HeardAt[i])
		}
	}
	return o
}

// After returns the outlook together with the facts of the previous round that are still needed: the times of first
// findings, isolation and losses. If the parameter last is zero, no earlier round exists. If the function unread
// reports true for a provider, After keeps the evidence of the previous round about this provider, and marks it as
// Stale.
func (o Outlook) After(last Outlook, unread func(provider string) bool) Outlook {
	o.Evidence = slices.Clone(o.Evidence)
	for n := range o.Evidence {
		e := &o.Evidence[n]
		e.Since = o.At
		before := last.Of(e.Provider)
		switch {
		case before.Access == e.Access && before.Tenant == e.Tenant && !before.Since.IsZero():
			e.Since = before.Since
		case e.Access == fleet.AccessSilent && before.answered():
			e.Since = last.At
		}
		e.network(before, o.At)
	}
	for _, e := range last.Evidence {
		if unread(e.Provider) {
			e.Stale = true
			o.Evidence = append(o.Evidence, e)
		}
	}
	o.IsolatedSince, o.IsolatedUntil = last.IsolatedSince, last.IsolatedUntil
	o.Sentenced, o.Lost = last.Sentenced, last.Lost
	if o.Isolated {
		if o.IsolatedUntil = o.At; !last.Isolated {
			o.IsolatedSince = o.At
		}
	}
	return o
}

// network computes Broken, the time since which the network has not worked. It uses the measurements of this round and
// of the previous round. A provider may report a working network although the end that would report the fault is dead.
// Such an end no longer updates its measurements.
func (e *Evidence) network(before Evidence, now time.Time) {
	e.HeardAt, e.Broken = nil, time.Time{}
	for n, at := range e.Heard {
		first := now
		if n < len(before.HeardAt) && before.Heard[n] == at {
			first = before.HeardAt[n]
		}
		e.HeardAt = append(e.HeardAt, first)
		if at != "" && now.Sub(first) >= cmp.Or(e.Quiet, quiet) {
			e.Network, e.Broken = "a gateway has measured nothing since "+at+", and may be dead", first
		}
	}
	switch {
	case e.Network == "":
	case !before.Broken.IsZero():
		e.Broken = before.Broken
	case e.Broken.IsZero():
		e.Broken = now
	}
}

// quiet is three times the interval at which an end of a network reports its measurements.
const quiet = 30 * time.Second

// network returns the fault of a provider's network, or of our own end of the peering. known is false while only one
// round has found the fault.
func (o Outlook) network(provider string) (s fleet.Standing, known bool) {
	switch e := o.Of(provider); {
	case e.Broken.IsZero() && e.Fault.Condition == "":
		return fleet.Standing{}, true
	case e.Broken.IsZero():
		return fleet.Standing{Fault: e.Fault.Condition, Message: e.Fault.Message, Since: o.At}, true
	case !e.Broken.Before(o.At):
		return fleet.Standing{}, false
	default:
		return fleet.Standing{Network: true, Local: e.Here, Fault: e.Fault.Condition,
			Message: cmp.Or(e.Fault.Message, e.Network), Since: e.Broken}, true
	}
}

// standing returns the fault of a provider when this round and the previous one agree. known is false while they
// disagree; the published fault then remains. A provider that is silent while this cluster is isolated is not blamed.
func (o Outlook) standing(provider string, last Outlook) (s fleet.Standing, known bool) {
	e, before := o.Of(provider), last.Of(provider)
	switch {
	case e.Access == "" || e.Stale:
		return fleet.Standing{}, false
	case e.Access == fleet.AccessGranted && e.Tenant == "":
		return o.network(provider)
	case e.Access != before.Access || e.Tenant != before.Tenant,
		e.Access == fleet.AccessSilent && o.Isolated != last.Isolated:
		return fleet.Standing{}, false
	}
	s = fleet.Standing{Tenant: e.Tenant, Message: e.Message, Since: e.Since}
	switch {
	case e.Access == fleet.AccessSilent && o.Isolated:
		s.Access, s.Since = fleet.AccessIsolated, o.IsolatedSince
		s.Message = "no provider with credentials answers, so this cluster may be cut off: no instance is lost for it"
	case e.Access != fleet.AccessGranted:
		s.Access = e.Access
	}
	return s, true
}
