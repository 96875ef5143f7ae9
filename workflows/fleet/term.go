package fleet

import (
	"bytes"
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Term is a time after which something is given up; 0 means never.
type Term struct{ metav1.Duration }

// UnmarshalJSON implements json.Unmarshaler: a duration, or the number 0.
func (t *Term) UnmarshalJSON(text []byte) error {
	if bytes.Equal(text, []byte("0")) {
		*t = Term{}
		return nil
	}
	return t.Duration.UnmarshalJSON(text)
}

// ZeroIsNever returns the time; strictyaml knows by it that 0 may be given.
func (t Term) ZeroIsNever() time.Duration { return t.Duration.Duration }

// or is the term, or the default when there is none.
func (t *Term) or(otherwise time.Duration) *Term {
	return cmp.Or(t, &Term{metav1.Duration{Duration: otherwise}})
}

// Over reports whether the term, counted from then, is over; without a beginning it is not.
func (t *Term) Over(from, now time.Time) bool {
	return t != nil && t.ZeroIsNever() > 0 && !from.IsZero() && now.Sub(from) >= t.ZeroIsNever()
}
