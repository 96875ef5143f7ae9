package client

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// listedOffer has the fields of a listed offer that the client reads.
type listedOffer struct {
	api.Posted
	RemainingSeconds *float64 `json:"remainingSeconds"` // nil from an older server
}

// end is the time at which an offer expires, by the server's clock and by this client's clock. The clocks may differ by
// hours.
type end struct{ server, ours *time.Time }

// longest bounds the remaining time that a server may report. A discovery server accepts only offers that expire
// earlier.
const longest = 365 * 24 * time.Hour

// steady bounds the difference between two computations of the same end. Network delays can cause a difference up to
// this bound.
const steady = 5 * time.Second

// resolve returns the end of the offer o, which is from a new response. e is the end of the same offer in the last
// response. If the two ends differ only because of network delays, resolve returns e, so that an unchanged offer
// stays equal. The remaining time counts from the time at which the request was sent. Therefore the computed end is
// never too late.
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
