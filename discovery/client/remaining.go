package client

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// listedOffer is a listed offer with the fields that the client reads.
type listedOffer struct {
	api.Posted
	RemainingSeconds *float64 `json:"remainingSeconds"` // nil from an older server
}

// end is the time at which an offer expires, by the server's clock and by this client's clock. The clocks may differ by
// hours.
type end struct{ server, ours *time.Time }

// longest is longer than the remaining time of any offer.
const longest = 365 * 24 * time.Hour

// steady bounds the difference that network delays cause between two computations of the same end.
const steady = 5 * time.Second

// resolve returns the end of the offer o in a new response. If it differs from e only by network delays, resolve
// returns e, so that an unchanged offer stays equal. The remaining time counts from the time of the request, so the
// computed end is never too late.
func (e end) resolve(o listedOffer, asked time.Time) end {
	if o.RemainingSeconds == nil || o.Expires == nil {
		return end{o.Expires, o.Expires}
	}
	remaining := min(max(*o.RemainingSeconds, 0), longest.Seconds()) // the server's value is not trusted
	ours := asked.Add(time.Duration(remaining * float64(time.Second)))
	if e.server != nil && e.server.Equal(*o.Expires) && ours.Sub(*e.ours).Abs() < steady {
		return e
	}
	return end{o.Expires, &ours}
}
