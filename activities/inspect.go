package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/shorten"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// Inspect executes a read command of an entity. The command may list existing objects: all objects when the entity
// recovers, the objects of single instances, or the objects of closed drivers. It may also check whether a provider
// still refuses this hub, or rank the providers that a group could keep peered.
func (a *Activities) Inspect(ctx context.Context, t Task) ([]fleet.Result, error) {
	ctx, stop := withHeartbeats(ctx)
	defer stop()
	r := fleet.Result{ID: t.ID, Outcome: fleet.OutcomeDone}
	var err error
	switch {
	case t.Kind == fleet.CommandRecover && t.Provider != "":
		if err = a.awaitClosed(ctx, t.After); err == nil {
			err = a.recoverProvider(ctx, t.Provider, &r)
		}
	case t.Kind == fleet.CommandRecover:
		r.Paused, r.Bill = a.pausedBefore(ctx, t.Group), a.billBefore(ctx, t.Group)
		r.Found, err = a.Backend.List(ctx, backend.Scope{Group: t.Group})
	case t.Kind == fleet.CommandInspect:
		r.Found, r.Empty, err = a.of(ctx, t.Group, t.Instances)
	case t.Kind == fleet.CommandDescribe:
		r.Drivers, err = a.check(ctx, t)
	case t.Kind == fleet.CommandStandby:
		r.Standby, err = a.rankStandby(ctx, *t.Standby)
	case t.Kind == fleet.CommandRefusal:
		a.checkRefusal(ctx, *t.Peer, &r)
	}
	if err != nil {
		return nil, toApplicationError(ctx, t.Provider, fmt.Errorf("%s: %w", t.Kind, err))
	}
	return []fleet.Result{r}, nil
}

// checkRefusal checks whether a provider still refuses this hub. When the provider does not answer, its entity decides
// when to check again.
func (a *Activities) checkRefusal(ctx context.Context, p fleet.Provider, r *fleet.Result) {
	bounded, cancel := context.WithTimeout(ctx, PassBound)
	defer cancel()
	refusing, err := a.Backend.Refusal(bounded, a.current(bounded, p))
	if err != nil {
		activity.GetLogger(ctx).Info("cannot check whether the provider still refuses this cluster", "provider", p.ID,
			"error", err)
		r.Outcome, r.Error = fleet.OutcomeFailed, shorten.Words(err.Error(), maxError)
		return
	}
	r.Refusing = refusing
}

// of lists the existing objects of some instances of a group. The result empty is true if the whole group has no
// object.
func (a *Activities) of(ctx context.Context, group string,
	instances []string) (some []fleet.Found, empty bool, err error) {
	found, err := a.Backend.List(ctx, backend.Scope{Group: group})
	if err != nil {
		return nil, false, fmt.Errorf("list objects of group %s: %w", group, err)
	}
	empty = len(found) == 0
	return slices.DeleteFunc(found, func(f fleet.Found) bool { return !slices.Contains(instances, f.Attempt.Instance) }),
		empty, nil
}

// check describes drivers, and lists the existing objects of the newest attempt of each closed driver.
func (a *Activities) check(ctx context.Context, t Task) ([]fleet.DriverStatus, error) {
	out := make([]fleet.DriverStatus, len(t.Drivers))
	workers, bounded := errgroup.WithContext(ctx)
	workers.SetLimit(a.fanOut())
	for n, d := range t.Drivers {
		workers.Go(func() error {
			s, err := a.status(bounded, d.WorkflowID)
			out[n] = fleet.DriverStatus{Instance: d.Instance, Running: s.Running, Failing: s.Failing, Completed: s.Completed}
			return err
		})
	}
	if err := workers.Wait(); err != nil {
		return nil, err
	}
	if err := a.replaceFailing(ctx, t, out); err != nil {
		return nil, err
	}
	var closed []string
	for _, s := range out {
		if !s.Running || s.Failing {
			closed = append(closed, s.Instance)
		}
	}
	if len(closed) == 0 {
		return out, nil
	}
	found, _, err := a.of(ctx, t.Group, closed)
	if err != nil {
		return nil, err
	}
	for n := range out {
		out[n].Found = newest(found, out[n].Instance, out[n].Running && !out[n].Failing)
	}
	return out, nil
}

// status describes a workflow. It terminates a workflow that no worker can continue (Status.Orphaned).
func (a *Activities) status(ctx context.Context, id string) (Status, error) {
	s, err := a.Workflows.Status(ctx, id)
	if err != nil || !s.Orphaned {
		return s, err
	}
	if err := a.Workflows.Terminate(ctx, id, "it is pinned to a version that has no worker any longer"); err != nil {
		return s, err
	}
	return a.Workflows.Status(ctx, id)
}

// replaceFailing terminates the drivers whose workflow task keeps failing (Status.Failing), so that new drivers
// replace them. It terminates no driver when the worker's build is the likely cause (fleet.BuildFails).
func (a *Activities) replaceFailing(ctx context.Context, t Task, drivers []fleet.DriverStatus) error {
	if fleet.BuildFails(drivers) {
		return nil
	}
	for n, s := range drivers {
		if !s.Failing {
			continue
		}
		if err := a.Workflows.Terminate(ctx, t.Drivers[n].WorkflowID, "its workflow task keeps failing"); err != nil {
			return err
		}
	}
	return nil
}

func newest(found []fleet.Found, instance string, running bool) (best *fleet.Found) {
	for n := range found {
		f := &found[n]
		if !running && f.Attempt.Instance == instance && (best == nil || f.Attempt.Number > best.Attempt.Number) {
			best = f
		}
	}
	return best
}

// closedBound is the time for which a recovery waits for the end of a cancelled removal. It is longer than one pass of
// the removal, and longer than the time until Temporal notices a dead worker. A removal that lasts longer cannot end,
// and must not keep the provider from recovering.
const closedBound = 25 * time.Second

// awaitClosed waits until the workflow of a removal is closed, so that the removal does not delete objects that are
// made after the recovery. If the id is empty, it does not wait. It gives up after closedBound.
func (a *Activities) awaitClosed(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	for end := a.now().Add(closedBound); ; {
		s, err := a.Workflows.Status(ctx, id)
		if err != nil {
			return fmt.Errorf("wait for the end of %s: %w", id, err)
		}
		if !s.Running {
			return nil
		}
		if a.now().After(end) {
			activity.GetLogger(ctx).Warn("a removal that was cancelled does not end; its provider recovers all the same",
				"workflow", id)
			return nil
		}
		if !wait.For(ctx, 200*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// recoverProvider lists the existing objects on one provider. An entity that has lost its history rebuilds its holds
// from this list.
func (a *Activities) recoverProvider(ctx context.Context, id string, r *fleet.Result) error {
	peers, err := a.Backend.Peers(ctx, id)
	if err != nil {
		return fmt.Errorf("list peerings: %w", err)
	}
	if len(peers) > 0 {
		r.Peering = &peers[0]
	}
	if r.Found, err = a.Backend.List(ctx, backend.Scope{Provider: id}); err != nil {
		return fmt.Errorf("list objects: %w", err)
	}
	if offer := a.offerOf(ctx, id); offer != nil {
		r.LingerSeconds, r.Unpeer = offer.LingerSeconds, offer.Unpeer
	}
	r.Cordoned = a.wasCordoned(ctx, id)
	return nil
}

// wasCordoned reports whether the observer's record or the last state of the provider's previous workflow shows a
// cordon. The record may be a minute old. The last state comes from Temporal's visibility store, which may not answer,
// or may lack the newest run.
func (a *Activities) wasCordoned(ctx context.Context, id string) bool {
	saved, errSaved := a.cordonedBefore(ctx, id)
	if saved {
		return true
	}
	bounded, cancel := context.WithTimeout(ctx, lookupBound)
	defer cancel()
	before, err := a.Entities.Before(bounded, id)
	if err = errors.Join(err, errSaved); err != nil && before.Cordoned.IsZero() {
		activity.GetLogger(ctx).Warn("the provider's previous state cannot be read; if the provider was cordoned, "+
			"cordon it again", "provider", id, "error", err)
	}
	return !before.Cordoned.IsZero()
}

// lookupBound limits optional lookups in the catalog and in Temporal's visibility store.
const lookupBound = 2 * time.Second

// offerOf returns the provider's present offer. It returns nil when the provider has no offer or the catalog cannot be
// read.
func (a *Activities) offerOf(ctx context.Context, id string) *fleet.Offer {
	bounded, cancel := context.WithTimeout(ctx, lookupBound)
	defer cancel()
	offers, _, err := a.Catalog.Offers(bounded)
	if err != nil {
		activity.GetLogger(ctx).Warn("offers cannot be read; the provider is treated as if it offered nothing", "provider",
			id, "error", err)
	}
	for n := range offers {
		if offers[n].Provider == id {
			return &offers[n]
		}
	}
	return nil
}
