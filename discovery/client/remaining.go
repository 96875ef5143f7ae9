package client

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// answered has the fields of a listed offer that the client reads.
type answered struct {
	api.Posted
	RemainingSeconds *float64 `json:"remainingSeconds"` // nil from an older server
}

// end is the time at which an offer ends: by the server's clock, and by ours. The clocks may be hours apart.
type end struct{ server, ours *time.Time }

// longest exceeds the longest life of an offer.
const longest = 365 * 24 * time.Hour

// steady bounds the difference between two readings of one end, which network delays cause.
const steady = 5 * time.Second

// or returns the end of the offer in the present response. It returns e if the two differ only by network delays, so
// that an unchanged offer stays equal. The remaining time counts from the request of the list, so the end is never too
// late.
func (e end) or(o answered, asked time.Time) end {
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
