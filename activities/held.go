package activities

import (
	"context"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// heldBound is how long a look at the holds may take.
const heldBound = 10 * time.Second

// heldOnly returns the group's attempts that have a live hold and no objects. What cannot be read is left to the next look.
// It costs Temporal one list, whatever the number of providers, and a read for each that seems to have such a hold: the
// list lags behind.
func (a *Activities) heldOnly(ctx context.Context, group string, found []backend.Found) (out []backend.Found) {
	ctx, cancel := context.WithTimeout(ctx, heldBound)
	defer cancel()
	listed, err := a.Holds.Listed(ctx)
	if err != nil {
		activity.GetLogger(ctx).Warn("providers cannot be listed; their holds are looked at the next time", "group", group, "error", err)
		return nil
	}
	objects := make(map[string]bool, len(found))
	for _, f := range found {
		objects[f.Attempt.ObjectName()] = true
	}
	bare := func(key string) bool {
		_, _, ok := fleet.ParseObjectName(group, key)
		return ok && !objects[key]
	}
	for i := range listed {
		id := listed[i].ID
		if !slices.ContainsFunc(listed[i].LiveHolds(), bare) {
			continue
		}
		p, err := a.Holds.Status(ctx, id)
		if err != nil {
			activity.GetLogger(ctx).Warn("provider cannot be read; its holds are looked at the next time", "provider", id, "error", err)
			continue
		}
		for _, key := range p.LiveHolds() {
			if instance, number, ok := fleet.ParseObjectName(group, key); ok && !objects[key] && p.Offer != nil {
				out = append(out, backend.Found{Attempt: backend.Attempt{
					Group: group, Instance: instance, Number: number, Provider: backend.Provider{ID: id, Credentials: p.Offer.Credentials},
				}})
			}
		}
	}
	return out
}
