package driver

import (
	"fmt"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// This file handles the end of a driver's wait for its provider: by an answer, or after too many requests without one.

// applyAnswer processes an answer of a provider to a request for a hold. If the present attempt waits for this answer,
// the attempt ends its wait. It releases a grant that no attempt waits for: a grant for an attempt that was abandoned,
// a grant of a provider that a repeated Select replaced, and a grant that arrived before its Select failed. It does
// not release a grant for any other later attempt. This driver forgot such an attempt in a reset, and the attempt's
// undo releases the grant.
func (d *Driver) applyAnswer(a fleet.Answer, early bool, now time.Time) []Action {
	at := d.Instance.AttemptRef()
	if a.State == fleet.HoldWaiting { // the group decides when to repeat; the answer proves the provider is not silent
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
		return d.releaseUnused(a, early)
	}
	if d.Instance.Phase != fleet.Peering || d.Ending != "" {
		return nil
	}
	kind := eventOf(a)
	if kind == fleet.Again {
		d.FullSince = now
	}
	d.apply(fleet.Event{Kind: kind, Step: fleet.StepAcquire, Attempt: d.Instance.Attempt, Failure: a.Failure}, now)
	return d.next(now)
}

// eventOf returns the event that an answer causes for the attempt that waits for it.
func eventOf(a fleet.Answer) fleet.EventKind {
	switch {
	case a.State == fleet.HoldGranted:
		return fleet.Done
	case a.State == fleet.HoldReleased, a.Failure != nil && a.Failure.Code.Row().Again:
		return fleet.Again
	default:
		return fleet.Refused
	}
}

// releaseUnused releases a grant that does not belong to the present attempt and its provider, see applyAnswer.
func (d *Driver) releaseUnused(a fleet.Answer, early bool) []Action {
	at := d.Instance.AttemptRef()
	at.Number, at.Provider = fleet.AttemptOfKey(a.Key), fleet.Provider{ID: a.Provider}
	if a.State != fleet.HoldGranted || at.Number > d.Instance.Attempt && !early {
		return nil
	}
	return []Action{{Release: &at}}
}

// requestAgain repeats the request to the provider, because the group has reported that the attempt has waited for a
// long time. After three consecutive requests without an answer the attempt ends, and the provider is not blamed.
func (d *Driver) requestAgain(o fleet.Order, now time.Time) []Action {
	at := d.Instance.AttemptRef()
	if d.Instance.Phase != fleet.Peering || o.Attempt != at.Number || o.Resend <= d.Resends || d.Ending != "" {
		return nil
	}
	d.Resends, d.Unanswered = o.Resend, d.Unanswered+1
	if d.Unanswered < len(fleet.ResendAfter) {
		return []Action{{Resend: true}}
	}
	text := fmt.Sprintf("provider %s did not answer %d times", at.Provider.ID, d.Unanswered)
	d.apply(fleet.Event{
		Kind: fleet.Again, Step: fleet.StepAcquire, Attempt: at.Number,
		Failure: fleet.NewFailure(fleet.CodeTimeout, at.Provider.ID, "acquire", text),
	}, now)
	return append([]Action{{Release: &at}}, d.next(now)...)
}
