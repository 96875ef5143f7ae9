package driver

import (
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// How a driver's wait for its provider ends: by an answer, or without one.

// answered takes the provider's answer, if the attempt waits for it. A grant for an attempt that was left is given
// back, and one of a provider that a Select chose which ran once more and then chose another, and one that came early,
// before its Select failed; any other for a later attempt, which this driver forgot when it was reset, is the undo's to
// give back.
func (d *Driver) answered(a fleet.Answer, early bool, now time.Time) []Action {
	at := d.Instance.AttemptRef()
	if a.State == fleet.HoldWaiting { // it is asked again, and is not silent
		if a.Key == at.ObjectName() {
			d.Unanswered = 0
		}
		return nil
	}
	if d.Running == fleet.StepSelect && fleet.AttemptOfKey(a.Key) > at.Number {
		d.early = &a
		return nil
	}
	if elsewhere := at.Provider.ID != "" && a.Provider != at.Provider.ID; elsewhere || a.Key != at.ObjectName() {
		return d.returns(a, early)
	}
	if d.Instance.Phase != fleet.Peering || d.Ending != "" {
		return nil
	}
	kind := meaning(a)
	if kind == fleet.Again {
		d.FullSince = now
	}
	d.apply(fleet.Event{Kind: kind, Step: fleet.StepAcquire, Attempt: d.Instance.Attempt, Failure: a.Failure}, now)
	return d.next(now)
}

// meaning is what an answer means for the attempt that waits for it.
func meaning(a fleet.Answer) fleet.EventKind {
	switch {
	case a.State == fleet.HoldGranted:
		return fleet.Done
	case a.State == fleet.HoldReleased, a.Failure != nil && a.Failure.Code.Row().Again:
		return fleet.Again
	default:
		return fleet.Refused
	}
}

// returns gives back a grant for another attempt than the present one, or of another provider: see answered.
func (d *Driver) returns(a fleet.Answer, early bool) []Action {
	at := d.Instance.AttemptRef()
	at.Number, at.Provider = fleet.AttemptOfKey(a.Key), fleet.Provider{ID: a.Provider}
	if a.State != fleet.HoldGranted || at.Number > d.Instance.Attempt && !early {
		return nil
	}
	return []Action{{Release: &at}}
}

// askAgain asks the provider once more, when the group says that the attempt waits for long; after three requests in a
// row without an answer the attempt is over, and nobody is to blame.
func (d *Driver) askAgain(o fleet.Order, now time.Time) []Action {
	at := d.Instance.AttemptRef()
	if d.Instance.Phase != fleet.Peering || o.Attempt != at.Number || o.Resend <= d.Resends || d.Ending != "" {
		return nil
	}
	d.Resends, d.Unanswered = o.Resend, d.Unanswered+1
	if d.Unanswered < len(fleet.AskAfter) {
		return []Action{{Ask: true}}
	}
	text := fmt.Sprintf("provider %s did not answer %d times", at.Provider.ID, d.Unanswered)
	d.apply(fleet.Event{
		Kind: fleet.Again, Step: fleet.StepAcquire, Attempt: at.Number,
		Failure: fleet.NewFailure(fleet.CodeTimeout, at.Provider.ID, "acquire", text),
	}, now)
	return append([]Action{{Release: &at}}, d.next(now)...)
}
