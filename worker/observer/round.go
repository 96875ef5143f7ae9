package observer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/activities/backend"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/comparison"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// roundsToAll is the number of complete rounds whose results a new leader sends to every entity, also to entities
// without differences. These signals publish the leader's term, and clear the evidence that the entities have kept from
// earlier leaders.
const roundsToAll = 2

// concurrentCordons bounds the number of Nodes that a round cordons concurrently. concurrentStarts bounds the number
// of entities that a round starts concurrently.
const (
	concurrentCordons = 16
	concurrentStarts  = 4
)

// world holds the objects and the peerings that a round has listed.
type world struct {
	found []fleet.Found
	peers []fleet.Provider
}

// round runs one round and returns the state for the next round. The caller must discard the state if round fails.
func (o *Observer) round(ctx context.Context, s state) (state, error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, roundBound)
	defer cancel()
	paused, err := o.mayObserve(ctx)
	if err != nil {
		return s, err
	}
	offers, _, err := o.Catalog.Offers(ctx)
	if err != nil {
		o.Logger.Info("cannot read the offers; the round continues without them", "error", err)
	}
	saved, err := positionsOf(ctx, o.Positions) // before the groups, so that no position is newer than its group
	if err != nil {
		o.Logger.Warn("cannot read the positions that the node groups have saved; the round continues without them", "error",
			err)
	}
	s.include(saved, time.Now())
	b := o.read(ctx, &s, offers)
	o.mirror(b)
	if o.progress.read(b); paused { // the publisher of the market uses this data also during a pause
		return s, nil
	}
	if err := s.numbered(b); err != nil {
		return s, err
	}
	var w world
	listed := time.Now()
	if w.found, err = o.Backend.List(ctx, backend.Scope{}); err != nil {
		return s, fmt.Errorf("list objects: %w", err)
	}
	if w.peers, err = o.Backend.Peers(ctx, ""); err != nil {
		return s, fmt.Errorf("list peerings: %w", err)
	}
	s.remember(b, w)
	s.books(b, time.Now())
	o.ensure(ctx, b, w)
	seen, unseen := o.inspect(ctx, s.Outlook, comparison.Watched(b.providers, w.found, w.peers), offers)
	unread := func(p string) bool { return unseen[p] || b.unreadProvider(p) }
	j := comparison.Judge(s.Outlook, seen, b.groups, b.providers, unread)
	o.cordon(ctx, j.Cordons(b.groups, w.found))
	kept, known := o.keepVolumes(ctx, b.groups, w)
	if err := ctx.Err(); err != nil {
		return s, fmt.Errorf("the round took longer than %s, so no result is sent: %w", roundBound, err)
	}
	s.complete++
	s.Differed = o.notify(ctx, s, b, w, j,
		func(g fleet.Snapshot) *[]string { return keepsOf(g, kept, known) })
	s.Outlook, s.soon = j.Now, j.Soon
	s.Sweep = o.sweep(ctx, s.Sweep, began, &b, w, offers)
	o.Conditions.Set(j.Conditions(b.providers), s.Sweep.Orphans, time.Now())
	o.watchPods(ctx, b.groups, time.Now())
	o.keepBills(ctx, began, s, b, w)
	s.Listed = listed
	return s, nil
}

// mayObserve reports whether an operator has paused the observer. It returns an error when the hub cannot be read, or
// belongs to another cluster.
func (o *Observer) mayObserve(ctx context.Context) (paused bool, err error) {
	if o.Hub == nil {
		return false, nil
	}
	hub, err := o.Hub(ctx)
	if err != nil {
		return false, fmt.Errorf("read the hub: %w", err)
	}
	o.progress.paused(hub.ObserverPaused)
	return hub.ObserverPaused, nil
}

// numbered assigns the round's id. The first round of a new leader gets a term above every term that an entity has
// published or that was saved. numbered returns errSuperseded if an entity has published a higher term than this
// leader's.
func (s *state) numbered(b booked) error {
	switch {
	case s.first:
		s.Round = fleet.RoundID{Term: max(s.Round.Term, b.term) + 1}
	case b.term > s.Round.Term:
		return errSuperseded
	}
	s.first = false
	s.Round.Number++
	return nil
}

// remember stores the names of the entities that the next round reads: the entities of existing objects and of
// bookings, and the entities that this round could not read.
func (s *state) remember(b booked, w world) {
	groups, providers := []string{}, []string{}
	for _, f := range w.found {
		groups, providers = append(groups, f.Attempt.Group), append(providers, f.Attempt.Provider.ID)
	}
	for _, p := range w.peers {
		providers = append(providers, p.ID)
	}
	for _, g := range b.groups {
		groups = append(groups, g.Group)
		for _, row := range g.Instances {
			providers = append(providers, row.Provider)
		}
		for _, h := range g.Standby {
			providers = append(providers, h.Provider)
		}
	}
	for _, p := range b.providers {
		if !idle(p) {
			providers = append(providers, p.ID)
		}
	}
	for _, name := range s.Groups {
		if b.unreadGroup(name) {
			groups = append(groups, name)
		}
	}
	for _, name := range s.Providers {
		if b.unreadProvider(name) {
			providers = append(providers, name)
		}
	}
	s.Groups, s.Providers = merged(groups, nil), merged(providers, nil)
}

// idle reports whether a provider has no peering, hold, cordon or condition, so that the next round need not read it.
func idle(p fleet.ProviderSnapshot) bool {
	return p.Phase == fleet.Absent && len(p.Holds)+len(p.Standby) == 0 && p.Cordoned.IsZero() && p.Standing.Good()
}

// ensure starts the entity of each provider that has a peering or a slice of ours but no running entity, for example
// because an operator terminated the workflow. Only the entity can remove the peering. ensure logs the errors, and the
// next round tries again.
func (o *Observer) ensure(ctx context.Context, b booked, w world) {
	var missing []string
	for _, p := range w.peers {
		missing = append(missing, p.ID)
	}
	for _, f := range w.found {
		missing = append(missing, f.Attempt.Provider.ID) // "" for objects without a provider
	}
	known := func(id string) bool { return b.sawProvider(id) || b.unreadProvider(id) }
	missing = slices.DeleteFunc(merged(missing, nil), known)
	wait.ForAll(missing, concurrentStarts, func(_ int, id string) {
		switch started, err := o.Entities.Ensure(ctx, id); {
		case err != nil:
			o.Logger.Warn("cannot start the provider's workflow, which its existing peering needs", "provider", id,
				"error", err)
		case started:
			o.Logger.Info("started the provider's workflow, which its existing peering needs", "provider", id)
		}
	})
}

// cordon inverts the cordon of each found Node: it cordons the Nodes that are not cordoned, and uncordons the
// cordoned Nodes. It logs the errors, and the next round tries again.
func (o *Observer) cordon(ctx context.Context, found []fleet.Found) {
	wait.ForAll(found, concurrentCordons, func(_ int, f fleet.Found) {
		if err := o.Backend.Cordon(ctx, f.Attempt, !f.Cordoned); err != nil {
			o.Logger.Warn("cannot cordon or uncordon a node; the next round tries again", "node",
				f.Attempt.ObjectName(), "error", err)
		}
	})
}

// notify sends the differences to each entity that differs now or differed in the last round. In the first rounds of
// a leader it sends to all entities. notify logs the errors, and returns the ids of the entities that differ, and of
// the entities that it could not reach.
func (o *Observer) notify(ctx context.Context, s state, b booked, w world, j comparison.Judgement,
	keeps func(fleet.Snapshot) *[]string) (differed []string) {
	var mu sync.Mutex
	send := func(id string, d fleet.Differences, must bool, deliver func(fleet.Differences) error) {
		d.Round = s.Round
		if d.Rows() == 0 && !must && s.complete > roundsToAll && !slices.Contains(s.Differed, id) {
			return
		}
		err := deliver(d)
		if errors.Is(err, fleet.ErrNotRunning) {
			return
		}
		if err != nil {
			o.Logger.Warn("cannot send the differences to an entity; the next round tries again", "entity", id, "error", err)
		}
		if err != nil || d.Rows() > 0 {
			mu.Lock()
			defer mu.Unlock()
			differed = append(differed, id)
		}
	}
	var before time.Duration
	if !s.Listed.IsZero() {
		before = time.Since(s.Listed)
	}
	wait.ForAll(b.groups, concurrentReads, func(_ int, g fleet.Snapshot) {
		d := comparison.GroupDiffers(g, w.found)
		d.Before = int64(before / time.Second)
		d.Epoch, d.Revision, d.Lost, d.Keeps = g.Epoch, g.Revision, j.Losses[g.Group], keeps(g)
		saved := s.Records[g.Group].Position
		reverted := g.Position().Behind(saved)
		if reverted {
			d.Seen = saved
		}
		send(groupID(g.Group), d, reverted, func(d fleet.Differences) error {
			return o.Messages.GroupDiffers(ctx, g.Group, d)
		})
	})
	wait.ForAll(b.providers, concurrentReads, func(_ int, p fleet.ProviderSnapshot) {
		d := comparison.ProviderDiffers(p, b.groups, b.unreadGroup, w.found, w.peers)
		d.Revision = p.Revision
		if standing, changed := j.Standing(p); changed {
			d.Standing = &standing
		}
		send(providerID(p.ID), d, mayClose(p), func(d fleet.Differences) error {
			return o.Messages.ProviderDiffers(ctx, p.ID, d)
		})
	})
	slices.Sort(differed)
	return differed
}

// mayClose reports whether a provider's entity has been unused for so long that it may close. The entity has no timer
// for this, so a round must signal it; the entity then decides by its own clock. mayClose limits these signals to
// entities that can close.
func mayClose(p fleet.ProviderSnapshot) bool {
	return p.Phase == fleet.Absent && len(p.Holds)+len(p.Standby) == 0 && p.Cordoned.IsZero() &&
		time.Since(p.Since) > fleet.CloseAfter
}
