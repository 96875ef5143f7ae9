package backend

import "github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"

// Pack has what was booked under one spec share it: a thousand copies would not fit in what Temporal takes as one payload
// (2 MiB), and a group's history gets what exists every minute. It leaves found alone.
func Pack(found []Found) []Found {
	first := map[string]string{} // the object that carries it, by hash
	out := make([]Found, len(found))
	for n, f := range found {
		if out[n] = f; f.Booking == nil {
			continue
		}
		hash, name := f.Booking.Spec.Hash(), f.Attempt.ObjectName()
		if of, ok := first[hash]; ok {
			out[n].Booking = &Booking{BookedAt: f.Booking.BookedAt, SpecOf: of}
		} else {
			first[hash] = name
		}
	}
	return out
}

// Unpack is Pack's reverse. What was not packed stays as it is.
func Unpack(found []Found) []Found {
	specs := map[string]fleet.GroupSpec{}
	for _, f := range found {
		if f.Booking != nil && f.Booking.SpecOf == "" {
			specs[f.Attempt.ObjectName()] = f.Booking.Spec
		}
	}
	out := make([]Found, len(found))
	for n, f := range found {
		if out[n] = f; f.Booking != nil && f.Booking.SpecOf != "" {
			out[n].Booking = &Booking{Spec: specs[f.Booking.SpecOf], BookedAt: f.Booking.BookedAt}
		}
	}
	return out
}
