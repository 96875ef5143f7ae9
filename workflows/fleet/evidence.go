package fleet

import (
	"slices"
	"time"
)

// Access is how a provider's API server answers us.
type Access string

// The answers. The empty one is none: nobody could ask, which says nothing of the provider.
const (
	AccessGranted Access = "granted"
	AccessRefused Access = "refused" // 401 or 403 for our credentials: it answers, and is never a verdict on nodes
	AccessSilent  Access = "silent"  // it does not answer
	// AccessIsolated is a Standing's only: it does not answer, and neither does anybody else.
	AccessIsolated Access = "isolated"
)

// Evidence is what one round saw of one provider.
type Evidence struct {
	Provider string       `json:"provider"`
	Access   Access       `json:"access,omitempty"`
	Tenant   RefusingKind `json:"tenant,omitempty"`
	// Absent are the attempts whose slice the provider lacks while the consumer has it.
	Absent []string `json:"absent,omitempty"`
	// Network is what is wrong with the network, in words; "" for nothing.
	Network string `json:"network,omitempty"`
	// Heard is when each of the network's ends has last measured that it reaches the other, "" for one that does not.
	// They are compared with each other only, never with a clock of ours.
	Heard []string `json:"heard,omitempty"`
	// Message is the provider's words, or our own.
	Message string `json:"message,omitempty"`
	// Since is when the first of the rounds began that have seen this access and tenancy in a row.
	Since time.Time `json:"since,omitzero"`
}

// Outlook is what a round of the comparison has seen of all providers that it looked at.
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
	return slices.ContainsFunc(o.Evidence, func(e Evidence) bool {
		return e.Access == AccessGranted || e.Access == AccessRefused
	})
}

// Silent reports whether any provider did not answer.
func (o Outlook) Silent() bool {
	return slices.ContainsFunc(o.Evidence, func(e Evidence) bool { return e.Access == AccessSilent })
}

// After takes over from the round before what lasts. A zero last is none: nothing has lasted then.
func (o Outlook) After(last Outlook) Outlook {
	o.Evidence = slices.Clone(o.Evidence)
	for n := range o.Evidence {
		e := &o.Evidence[n]
		e.Since = o.At
		before := last.Of(e.Provider)
		if before.Access == e.Access && before.Tenant == e.Tenant && !before.Since.IsZero() {
			e.Since = before.Since
		}
	}
	o.IsolatedSince, o.IsolatedUntil, o.Sentenced = last.IsolatedSince, last.IsolatedUntil, last.Sentenced
	if o.Isolated {
		if o.IsolatedUntil = o.At; !last.Isolated {
			o.IsolatedSince = o.At
		}
	}
	return o
}

// network is what is wrong with a provider's network in this round and the one before, which may say that it works
// although the end that would say otherwise is dead. known is false when only one of the rounds shows it.
func (o Outlook) network(provider string, last Outlook) (s Standing, known bool) {
	e, before := o.Of(provider), last.Of(provider)
	wrong := e.Network
	if wrong != "" && before.Network == "" {
		return Standing{}, false
	}
	for n, at := range e.Heard {
		if at != "" && n < len(before.Heard) && before.Heard[n] == at {
			wrong = "a gateway has measured nothing since " + at + ", and may be dead"
		}
	}
	if wrong == "" {
		return Standing{}, true
	}
	return Standing{Network: true, Message: wrong, Since: last.At}, true
}

// Standing is what is wrong with a provider in the eyes of its entity; the zero value is nothing.
type Standing struct {
	Access Access       `json:"access,omitempty"`
	Tenant RefusingKind `json:"tenant,omitempty"`
	// Network: the clusters do not reach each other's pods. Nodes show that by themselves; nothing is decided by it.
	Network bool      `json:"network,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Good reports whether nothing is wrong.
func (s Standing) Good() bool { return s.Access == "" && s.Tenant == "" && !s.Network }

// Closes reports whether nothing new is made on the provider. One that has deleted our Tenant may be asked for another,
// and while this cluster is isolated no provider is to blame.
func (s Standing) Closes() bool {
	return s.Access == AccessRefused || s.Access == AccessSilent || s.Tenant == RefusingCordoned ||
		s.Tenant == RefusingDrained
}

// is reports whether both are the same to those who decide by them.
func (s Standing) is(o Standing) bool {
	return s.Access == o.Access && s.Tenant == o.Tenant && s.Network == o.Network
}

// Condition names what is wrong; "" for nothing.
func (s Standing) Condition() string {
	switch {
	case s.Access == AccessRefused:
		return ConditionCredentialsRefused
	case s.Access == AccessSilent:
		return ConditionUnreachable
	case s.Access == AccessIsolated:
		return ConditionConsumerIsolated
	case s.Tenant != "":
		return "Tenant" + string(s.Tenant)
	case s.Network:
		return ConditionNetworkNotConnected
	default:
		return ""
	}
}

// The conditions that people look for.
const (
	ConditionCredentialsRefused = "CredentialsRefused"
	ConditionConsumerIsolated   = "ConsumerIsolated"
	ConditionUnreachable        = "Unreachable"
	// ConditionNetworkNotConnected: the gateways do not reach each other, or one of them is dead.
	ConditionNetworkNotConnected = "NetworkNotConnected"
)

// Conditions lists every condition of a provider.
var Conditions = []string{
	ConditionCredentialsRefused, ConditionConsumerIsolated, ConditionUnreachable, "Tenant" + string(RefusingCordoned),
	"Tenant" + string(RefusingDrained), "Tenant" + string(RefusingRemoved), ConditionNetworkNotConnected,
}

// standing is what this round and the one before show to be wrong with a provider. known is false while that is open:
// what was told before holds. A provider that nobody answers for while this cluster is isolated is not to blame.
func (o Outlook) standing(provider string, last Outlook) (s Standing, known bool) {
	e, before := o.Of(provider), last.Of(provider)
	switch {
	case e.Access == "":
		return Standing{}, false
	case e.Access == AccessGranted && e.Tenant == "":
		return o.network(provider, last)
	case e.Access != before.Access || e.Tenant != before.Tenant || e.Access == AccessSilent && o.Isolated != last.Isolated:
		return Standing{}, false
	}
	s = Standing{Tenant: e.Tenant, Message: e.Message, Since: e.Since}
	switch {
	case e.Access == AccessSilent && o.Isolated:
		s.Access, s.Since = AccessIsolated, o.IsolatedSince
		s.Message = "no provider with credentials answers, so this cluster may be cut off: no instance is lost for it"
	case e.Access != AccessGranted:
		s.Access = e.Access
	}
	return s, true
}
