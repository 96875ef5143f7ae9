package comparison

import (
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Judgement contains the decisions of one round of the observer about its providers.
type Judgement struct {
	// Now contains the findings of the round, with the lasting facts of earlier rounds.
	Now Outlook
	// Losses lists the lost instances by group.
	Losses map[string][]fleet.Loss
	// Soon reports that the next round should start soon, because it may find instances lost.
	Soon bool

	last      Outlook
	providers map[string]fleet.ProviderSnapshot
}

// Judge evaluates the evidence of this round (now) and of the previous round (last). If the parameter last is zero, no
// earlier round exists. groups and providers are the snapshots that the round has read. unread reports whether the
// round could not read a provider, or had no time to check it. The state of a Tenant counts only while the peering is
// established, lingering or refusing, because a peering that is being made or removed has no Tenant.
func Judge(last, now Outlook, groups []fleet.Snapshot, providers []fleet.ProviderSnapshot,
	unread func(provider string) bool) Judgement {
	j := Judgement{last: last, providers: map[string]fleet.ProviderSnapshot{}}
	for _, p := range providers {
		j.providers[p.ID] = p
	}
	now.Evidence = slices.Clone(now.Evidence)
	for n := range now.Evidence {
		e := &now.Evidence[n]
		switch j.providers[e.Provider].Phase {
		case fleet.Established, fleet.Lingering, fleet.Refusing:
		default:
			e.Tenant = ""
		}
	}
	j.Now = now.After(last, unread)
	if j.Losses = losses(groups, last, j.Now); len(j.Losses) > 0 {
		j.Now.Sentenced, j.Now.Lost = j.Now.At, nil
		for _, all := range j.Losses {
			for _, l := range all {
				j.Now.Lost = append(j.Now.Lost, l.Instance)
			}
		}
		slices.Sort(j.Now.Lost)
	}
	j.Soon = losesSoon(groups, j.Now)
	return j
}

// Standing returns the fault of a provider as this round found it. If the evidence does not suffice for a decision,
// it returns the fault that the provider has published. changed reports that the result differs from the published
// fault.
func (j Judgement) Standing(p fleet.ProviderSnapshot) (s fleet.Standing, changed bool) {
	s, known := j.Now.standing(p.ID, j.last)
	if !known {
		return p.Standing, false
	}
	return s, !same(s, p.Standing)
}

// Conditions returns the condition of each provider, "" for a provider without faults.
func (j Judgement) Conditions(providers []fleet.ProviderSnapshot) map[string]string {
	out := map[string]string{}
	for _, p := range providers {
		s, _ := j.Standing(p)
		out[p.ID] = s.Condition()
	}
	return out
}

// Watched returns the providers that a round checks: providers with holds, and providers with a known fault.
func Watched(providers []fleet.ProviderSnapshot, found []fleet.Found, peers []fleet.Provider) (out []fleet.Provider) {
	known := map[string]fleet.Credentials{}
	for _, f := range found {
		known[f.Attempt.Provider.ID] = f.Attempt.Provider.Credentials
	}
	for _, p := range peers {
		known[p.ID] = p.Credentials
	}
	for _, p := range providers {
		if len(p.Holds)+len(p.Standby) == 0 && p.Standing.Good() {
			continue
		}
		checked := fleet.Provider{ID: p.ID, Credentials: known[p.ID]}
		if p.Offer != nil {
			checked.Credentials, checked.Network = p.Offer.Credentials, p.Offer.Network
		}
		if checked.Credentials != (fleet.Credentials{}) {
			out = append(out, checked)
		}
	}
	return out
}

// Cordons returns the attempts whose Node must be cordoned or uncordoned. A Node is cordoned while its provider
// accepts nothing new. The Node of an instance that is being removed stays as it is.
func (j Judgement) Cordons(groups []fleet.Snapshot, found []fleet.Found) (out []fleet.Found) {
	settled := map[string]bool{}
	for _, g := range groups {
		for _, row := range g.Instances {
			settled[fleet.ObjectName(row.Name, row.Attempt)] = isSettled(row)
		}
	}
	for _, f := range found {
		id := f.Attempt.Provider.ID
		if !settled[f.Attempt.ObjectName()] || !f.Node || !j.Now.Of(id).granted() {
			continue
		}
		if s, _ := j.Standing(j.providers[id]); (s.Tenant == fleet.RefusingCordoned) != f.Cordoned {
			out = append(out, f)
		}
	}
	return out
}

// same reports whether s and o have the same effect on decisions. It does not compare their messages and times.
func same(s, o fleet.Standing) bool {
	return s.Access == o.Access && s.Tenant == o.Tenant && s.Network == o.Network && s.Local == o.Local &&
		s.Fault == o.Fault
}
