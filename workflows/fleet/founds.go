package fleet

import "encoding/json"

// Founds are many Found. On the wire they are compressed: a thousand that carry their bookings' specs would not fit in
// what Temporal takes as one payload (2 MiB).
type Founds []Found

// MarshalJSON implements json.Marshaler.
func (f Founds) MarshalJSON() ([]byte, error) {
	packed, err := Encode([]Found(f))
	if err != nil {
		return nil, err
	}
	return json.Marshal(packed)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Founds) UnmarshalJSON(text []byte) error {
	var packed []byte
	if err := json.Unmarshal(text, &packed); err != nil || packed == nil {
		return err
	}
	var found []Found
	if err := Decode(packed, &found); err != nil {
		return err
	}
	*f = found
	return nil
}
