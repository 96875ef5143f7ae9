package workflows

import (
	"cmp"
	"slices"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// recovered makes instances of what exists. The newest attempt of an instance speaks for it: Ready when it is whole,
// Draining otherwise, because nobody remembers whether CA still wants it; a node that carries pods is drained like any
// other. Older attempts are leftovers to undo. Objects without a readable booking are left to people.
func recovered(found []backend.Found, now time.Time) (out []fleet.Instance, leftovers []backend.Attempt) {
	newest := map[string]int{}
	found = slices.DeleteFunc(slices.Clone(found), held) // what becomes of these a later look shows
	for _, f := range found {
		newest[f.Attempt.Instance] = max(newest[f.Attempt.Instance], f.Attempt.Number)
	}
	for _, f := range found {
		if f.Attempt.Number != newest[f.Attempt.Instance] {
			leftovers = append(leftovers, f.Attempt)
			continue
		}
		if f.Booking == nil {
			continue
		}
		i := fleet.Instance{
			Name: f.Attempt.Instance, Spec: f.Booking.Spec, BookedAt: f.Booking.BookedAt, Since: now, Attempt: f.Attempt.Number,
			Offer: &fleet.Offer{Name: f.Attempt.Provider.ID, Provider: f.Attempt.Provider.ID, Credentials: f.Attempt.Provider.Credentials},
		}
		i.Spec.Budgets = i.Spec.Budgets.WithDefaults()
		switch {
		case f.Stamped && f.Marked && !f.Leaving:
			i.Phase, i.Registered, i.NotReady = fleet.Ready, true, !f.Ready
		case f.Node && !f.Stamped && !f.Leaving && f.Slice && !i.Deadline().Before(now):
			// It was on its way: the step adopts what is there. One that is stamped was marked before, so without the mark
			// it is on its way out.
			i.Phase = fleet.Joining
		default:
			i.Phase, i.Leaving = fleet.Draining, true
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b fleet.Instance) int {
		return cmp.Or(a.BookedAt.Compare(b.BookedAt), cmp.Compare(a.Name, b.Name))
	})
	return out, leftovers
}
