package fleet

// Packed is a Ledger as it is handed to the next run of its group. Instances booked under one spec share it, because a
// thousand copies would not fit in what Temporal takes as one payload (2 MiB).
type Packed struct {
	Ledger
	// Specs are those that instances share, by Hash.
	Specs map[string]GroupSpec `json:"specs,omitempty"`
}

// Pack makes a Packed of a ledger, which it leaves alone.
func (l Ledger) Pack() Packed {
	p := Packed{Ledger: l, Specs: map[string]GroupSpec{}}
	p.Instances = make([]Instance, len(l.Instances))
	for n, i := range l.Instances {
		i.SpecHash = i.Spec.Hash()
		p.Specs[i.SpecHash], i.Spec = i.Spec, GroupSpec{}
		p.Instances[n] = i
	}
	return p
}

// Unpack is Pack's reverse. An instance that was not packed stays as it is.
func (p Packed) Unpack() Ledger {
	for n := range p.Instances {
		if i := &p.Instances[n]; i.SpecHash != "" {
			i.Spec, i.SpecHash = p.Specs[i.SpecHash], ""
		}
	}
	return p.Ledger
}
