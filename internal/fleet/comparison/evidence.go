package comparison

import (
	"cmp"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Evidence is what one round saw of one provider.
type Evidence struct {
	Provider string             `json:"provider"`
	Access   fleet.Access       `json:"access,omitempty"`
	Tenant   fleet.RefusingKind `json:"tenant,omitempty"`
	// Absent are the attempts whose slice the provider lacks while the consumer has it.
	Absent []string `json:"absent,omitempty"`
	// Network is what is wrong with the network, in words; "" for nothing.
	Network string `json:"network,omitempty"`
	// Heard is when each of the network's ends has last measured that it reaches the other, "" for one that does not.
	// They are compared with each other only, never with our clock. HeardAt is which round read each first, and
	// Quiet how long it may stay the same.
	Heard   []string      `json:"heard,omitempty"`
	HeardAt []time.Time   `json:"heardAt,omitempty"`
	Quiet   time.Duration `json:"quiet,omitempty"`
	// Broken is since when rounds in a row have seen that the network does not work; zero when it does. Here: our own
	// gateway does not run, for which no provider is to blame.
	Broken time.Time `json:"broken,omitzero"`
	Here   bool      `json:"here,omitempty"`
	// Fault is what is wrong with the peering on this cluster.
	Fault fleet.Fault `json:"fault,omitzero"`
	// Message is the provider's words, or our own.
	Message string `json:"message,omitempty"`
	// Stale: the provider's entity could not be read in this round, or there was no time for a look. The evidence is that
	// of an earlier round, and nothing is judged by it.
	Stale bool `json:"stale,omitempty"`
	// Since is when the first of the rounds began that have seen this access and tenancy in a row; of a provider that has
	// fallen silent, when the last round began that it answered.
	Since time.Time `json:"since,omitzero"`
}

// Outlook is what a round of the observer has seen of all providers that it looked at.
type Outlook struct {
	At       time.Time  `json:"at"`
	Evidence []Evidence `json:"evidence,omitempty"`
	// Isolated: no provider with credentials answers, so it is rather this cluster that nobody can reach.
	Isolated bool `json:"isolated,omitempty"`
	// IsolatedSince is when the present or last isolation began, IsolatedUntil the last round that saw it.
	IsolatedSince time.Time `json:"isolatedSince,omitzero"`
	IsolatedUntil time.Time `json:"isolatedUntil,omitzero"`
	// Sentenced is when groups were last told that instances are lost.
	Sentenced time.Time `json:"sentenced,omitzero"`
	// Lost are these instances. A group refuses a loss while its Node is not unready for long enough, by its own clock.
	Lost []string `json:"lost,omitempty"`
}

// Of is the evidence of a provider; the zero Evidence when the round did not look at it.
func (o Outlook) Of(provider string) Evidence {
	for _, e := range o.Evidence {
		if e.Provider == provider {
			return e
		}
	}
	return Evidence{Provider: provider}
}

// Answered reports whether any provider answered; one that refuses our credentials does.
func (o Outlook) Answered() bool {
	return slices.ContainsFunc(o.Evidence, Evidence.answered)
}

// Compare orders evidence by provider.
func (e Evidence) Compare(o Evidence) int { return cmp.Compare(e.Provider, o.Provider) }

func (e Evidence) answered() bool {
	return e.Access == fleet.AccessGranted || e.Access == fleet.AccessRefused
}

// granted reports whether this round has seen that the provider lets us in.
func (e Evidence) granted() bool { return e.Access == fleet.AccessGranted && !e.Stale }

// Silent reports whether any provider did not answer.
func (o Outlook) Silent() bool {
	return slices.ContainsFunc(o.Evidence, func(e Evidence) bool { return e.Access == fleet.AccessSilent })
}

// Later is the outlook with all its times moved by d.
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

// After takes over from the round before what lasts. A zero last is none: nothing has lasted then. The evidence of the
// providers that unread names stays as it was.
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

// network takes over from the round before since when the network does not work. It may say that it works although the
// end that would say otherwise is dead: then that end measures nothing any longer.
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

// quiet is three times how often an end of a network tells what it has measured.
const quiet = 30 * time.Second

// network is what is wrong with a provider's network, or with our own end of the peering. known is false while only one
// round shows it.
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

// standing is what this round and the one before show to be wrong with a provider. known is false while that is open:
// what was told before holds. A provider that nobody answers for while this cluster is isolated is not to blame.
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
