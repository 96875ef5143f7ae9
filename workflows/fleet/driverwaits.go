package fleet

import (
	"fmt"
	"time"
)

// How a driver's wait for its provider ends: by an answer, or without one.

// askAfter is how long a driver waits, from its acquire or the ask before, until its group has it ask the provider
// again; the last of them holds for all that follow. As many requests in a row without an answer end the attempt.
var askAfter = []time.Duration{30 * time.Second, 60 * time.Second, 120 * time.Second}

// answered takes the provider's answer, if the attempt waits for it. A grant for an attempt that was left is given
// back, and one that came early, before its Select failed; any other for a later attempt, which this driver forgot when
// it was reset, is the undo's to give back.
func (d *Driver) answered(a Answer, early bool, now time.Time) []DriverAction {
	at := d.Instance.AttemptRef()
	if a.State == HoldWaiting { // it is asked again, and is not silent
		if a.Key == at.ObjectName() {
			d.Unanswered = 0
		}
		return nil
	}
	if d.Running == StepSelect && AttemptOfKey(a.Key) > at.Number {
		d.early = &a
		return nil
	}
	if a.Key != at.ObjectName() {
		return d.returns(a, early)
	}
	if d.Instance.Phase != Peering || d.Ending != "" {
		return nil
	}
	ev := Event{Kind: Done, Step: StepAcquire, Attempt: d.Instance.Attempt, Failure: a.Failure}
	switch {
	case a.State == HoldGranted:
	case a.State == HoldReleased, a.Failure != nil && a.Failure.Code == CodeNoCapacity:
		ev.Kind = Again
	default:
		ev.Kind = Refused
	}
	if ev.Kind == Again && d.FullSince.IsZero() {
		d.FullSince = now
	}
	d.apply(ev, now)
	return d.next(now)
}

// returns gives back a grant for another attempt than the present one: see answered.
func (d *Driver) returns(a Answer, early bool) []DriverAction {
	at := d.Instance.AttemptRef()
	at.Number, at.Provider = AttemptOfKey(a.Key), Provider{ID: a.From}
	if a.State != HoldGranted || at.Number >= d.Instance.Attempt && !early {
		return nil
	}
	return []DriverAction{{Release: &at}}
}

// askAgain asks the provider once more, when the group says that the attempt waits for long; after three requests in a
// row without an answer the attempt is over, and nobody is to blame.
func (d *Driver) askAgain(o Order, now time.Time) []DriverAction {
	at := d.Instance.AttemptRef()
	if d.Instance.Phase != Peering || o.Attempt != at.Number || o.Ask <= d.Asks || d.Ending != "" {
		return nil
	}
	d.Asks, d.Unanswered = o.Ask, d.Unanswered+1
	if d.Unanswered < len(askAfter) {
		return []DriverAction{{Ask: true}}
	}
	text := fmt.Sprintf("provider %s did not answer %d times", at.Provider.ID, d.Unanswered)
	d.apply(Event{
		Kind: Again, Step: StepAcquire, Attempt: at.Number, Failure: NewFailure(CodeTimeout, at.Provider.ID, "acquire", text),
	}, now)
	return append([]DriverAction{{Release: &at}}, d.next(now)...)
}
