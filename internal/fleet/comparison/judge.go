package comparison

import (
	"slices"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// Judgement is what a round of the observer makes of the evidence of its providers.
type Judgement struct {
	// Now is what the round has seen, with what lasts from before.
	Now Outlook
	// Losses are the instances that are lost, by group.
	Losses map[string][]fleet.Loss
	// Soon: the next round should come soon, because instances may be lost by it.
	Soon bool

	last      Outlook
	providers map[string]fleet.ProviderSnapshot
}

// Judge judges by the evidence of this round and the one before; a zero last is none. groups and providers are those
// that the round has read; unread reports which providers it has not, or has had no time to look at. A Tenant counts
// only while the peering stands: one that is being made or removed has none.
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

// Standing is what is wrong with a provider, by this round or as it published; changed says that it has not published
// that.
func (j Judgement) Standing(p fleet.ProviderSnapshot) (s fleet.Standing, changed bool) {
	s, known := j.Now.standing(p.ID, j.last)
	if !known {
		return p.Standing, false
	}
	return s, !same(s, p.Standing)
}

// Conditions are the conditions of the providers, "" where all is well.
func (j Judgement) Conditions(providers []fleet.ProviderSnapshot) map[string]string {
	out := map[string]string{}
	for _, p := range providers {
		s, _ := j.Standing(p)
		out[p.ID] = s.Condition()
	}
	return out
}

// Watched are the providers that a round looks at: those with holds, and those with something wrong.
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
		looked := fleet.Provider{ID: p.ID, Credentials: known[p.ID]}
		if p.Offer != nil {
			looked.Credentials, looked.Network = p.Offer.Credentials, p.Offer.Network
		}
		if looked.Credentials != (fleet.Credentials{}) {
			out = append(out, looked)
		}
	}
	return out
}

// Cordons are the attempts whose Node is to be cordoned, because the provider takes nothing new, or uncordoned, because
// it does again. One that is on its way out stays as it is.
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

// same reports whether both are the same to those who decide by them.
func same(s, o fleet.Standing) bool {
	return s.Access == o.Access && s.Tenant == o.Tenant && s.Network == o.Network && s.Local == o.Local &&
		s.Fault == o.Fault
}
