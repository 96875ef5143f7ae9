package fleet

import "slices"

// Judgement is what a round of the comparison makes of the evidence of its providers.
type Judgement struct {
	// Now is what the round has seen, with what lasts from before.
	Now Outlook
	// Losses are the instances that are lost, by group.
	Losses map[string][]Loss

	last      Outlook
	providers map[string]ProviderSnapshot
}

// Judge judges by the evidence of this round and the one before; a zero last is none. A Tenant counts only while the
// peering stands: one that is being made or removed has none.
func Judge(last, now Outlook, groups []Snapshot, providers []ProviderSnapshot) Judgement {
	j := Judgement{last: last, providers: map[string]ProviderSnapshot{}}
	for _, p := range providers {
		j.providers[p.ID] = p
	}
	now.Evidence = slices.Clone(now.Evidence)
	for n := range now.Evidence {
		e := &now.Evidence[n]
		if phase := j.providers[e.Provider].Phase; phase != Established && phase != Lingering && phase != Refusing {
			e.Tenant = ""
		}
	}
	j.Now = now.After(last)
	if j.Losses = losses(groups, last, j.Now); len(j.Losses) > 0 {
		j.Now.Sentenced = j.Now.At
	}
	return j
}

// Standing is what is wrong with a provider, by this round or as it published; changed says that it has not published
// that.
func (j Judgement) Standing(p ProviderSnapshot) (s Standing, changed bool) {
	s, known := j.Now.standing(p.ID, j.last)
	if !known {
		return p.Standing, false
	}
	return s, !s.is(p.Standing)
}

// Conditions are the conditions of the providers, "" where all is well.
func (j Judgement) Conditions(providers []ProviderSnapshot) map[string]string {
	out := map[string]string{}
	for _, p := range providers {
		s, _ := j.Standing(p)
		out[p.ID] = s.Condition()
	}
	return out
}

// Watched are the providers that the next round looks at: those with holds, and those with something wrong.
func (j Judgement) Watched(providers []ProviderSnapshot, found []Found, peers []Provider) (out []Provider) {
	known := map[string]Credentials{}
	for _, f := range found {
		known[f.Attempt.Provider.ID] = f.Attempt.Provider.Credentials
	}
	for _, p := range peers {
		known[p.ID] = p.Credentials
	}
	for _, p := range providers {
		if s, _ := j.Standing(p); len(p.Holds)+len(p.Standby) == 0 && s.Good() {
			continue
		}
		looked := Provider{ID: p.ID, Credentials: known[p.ID]}
		if p.Offer != nil {
			looked.Credentials, looked.Network = p.Offer.Credentials, p.Offer.Network
		}
		if looked.Credentials != (Credentials{}) {
			out = append(out, looked)
		}
	}
	return out
}

// Cordons are the attempts whose Node is to be cordoned, because the provider takes nothing new, or uncordoned, because
// it does again. One that is on its way out stays as it is.
func (j Judgement) Cordons(groups []Snapshot, found []Found) (out []Found) {
	settled := map[string]bool{}
	for _, g := range groups {
		for _, row := range g.Instances {
			settled[ObjectName(row.Name, row.Attempt)] = row.settled()
		}
	}
	for _, f := range found {
		id := f.Attempt.Provider.ID
		if !settled[f.Attempt.ObjectName()] || !f.Node || j.Now.Of(id).Access != AccessGranted {
			continue
		}
		if s, _ := j.Standing(j.providers[id]); (s.Tenant == RefusingCordoned) != f.Cordoned {
			out = append(out, f)
		}
	}
	return out
}
