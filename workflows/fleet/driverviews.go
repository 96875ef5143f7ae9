package fleet

import "slices"

// What a driver tells its group.

// View is what the driver tells of its instance now, under its newest sequence.
func (d *Driver) View() View {
	i := &d.Instance
	v := View{
		Instance: i.Name, Generation: d.Generation, Sequence: d.Sequence, Began: d.Began, Phase: i.Phase,
		Attempt: i.Attempt,
		Refused: slices.Clone(i.Refused), Failure: i.Failure, Stuck: i.Stuck, Force: i.Force, Left: slices.Clone(d.Left),
		SpecHash: i.SpecHash, BookedAt: i.BookedAt,
	}
	if i.Offer != nil {
		v.Offer = &Offer{Name: i.Offer.Name, Provider: i.Offer.Provider, Credentials: i.Offer.Credentials,
			Hourly: i.Offer.Hourly}
	}
	return v
}

// Chosen is the view that Select tells with its choice, before the provider is asked.
func (v View) Chosen(o Offer) View {
	v.Phase, v.Attempt = Peering, v.Attempt+1
	v.Offer = &Offer{Name: o.Name, Provider: o.Provider, Credentials: o.Credentials, Hourly: o.Hourly}
	return v
}

// Joined is the view that Join tells when the Node is Ready.
func (v View) Joined() View {
	v.Phase, v.Failure, v.End = Ready, nil, EndFinal
	return v
}

// Returned is the view that Return tells when nothing is left.
func (v View) Returned() View {
	v.Phase, v.Stuck, v.End = Released, "", EndFinal
	return v
}
