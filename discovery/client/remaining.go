package client

import (
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/api"
)

// answered is an offer of a list as far as it is read.
type answered struct {
	api.Posted
	RemainingSeconds *float64 `json:"remainingSeconds"` // nil: of an older server
}

// end is when an offer ends: by the server's clock, and by ours, which may be hours apart.
type end struct{ server, ours *time.Time }

// longest is more than an offer may live.
const longest = 365 * 24 * time.Hour

// steady is how much two readings of one end may differ by what the answers took on their way.
const steady = 5 * time.Second

// or is the end of the offer as it was answered now, or still this one, if it is the same: so that an offer that has
// not changed does not seem to. What remains is counted from when the list was asked for, so never too long.
func (e end) or(o answered, asked time.Time) end {
	if o.RemainingSeconds == nil || o.Expires == nil {
		return end{o.Expires, o.Expires}
	}
	remaining := min(max(*o.RemainingSeconds, 0), longest.Seconds()) // the server may say anything
	ours := asked.Add(time.Duration(remaining * float64(time.Second)))
	if e.server != nil && e.server.Equal(*o.Expires) && ours.Sub(*e.ours).Abs() < steady {
		return e
	}
	return end{o.Expires, &ours}
}
