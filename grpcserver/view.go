package grpcserver

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
)

// group holds one node group and the server's knowledge about it. No lock is needed to read the group's picture.
type group struct {
	id    string
	terms atomic.Pointer[terms] // never nil; replaced as the config changes

	// turn serialises the group's mutations: only the holder of this semaphore may send one.
	turn *semaphore.Weighted
	// reading serialises the reads of Refresh, see readShared.
	reading *semaphore.Weighted

	picture  atomic.Pointer[picture]   // nil until the first snapshot
	readAt   atomic.Pointer[time.Time] // start of the last read that confirmed picture; nil until the first snapshot
	unusable atomic.Pointer[problem]   // why the last Refresh could not read or configure the group; nil when it could

	limitsReached atomic.Int64 // number of reached limits of spending at the last call of warnOfSpending

	caWaits atomic.Int64 // the last max-node-provision-time that CA has sent, in nanoseconds; 0 if none

	mu        sync.Mutex     // guards the fields below and the replacement of picture
	newest    fleet.Position // newest position in a snapshot or in the result of an operation
	newestAt  time.Time      // when newest was set
	lostAt    time.Time      // time since which the outcome of an operation is unknown; zero if known
	settlesAt time.Time      // a read that starts at this time or later shows the outcome
	deletions []*deletion    // they wait for the turn; the call that adds the first one starts releaseWaiting
}

// picture is the last snapshot of a group that the server has read, with indexes. A stored picture never changes.
type picture struct {
	fleet.Snapshot
	counting map[string]struct{} // names of the instances that count
	on       map[string]int      // number of instances on each provider
	waiting  int                 // number of instances that count and have no provider
	// left contains the instances that counted in earlier pictures and are released: by name, the time of the
	// release. Entries are dropped after releasedFor.
	left map[string]time.Time
}

// releasedFor is the time for which the server still knows the group of a released instance that has no Node. CA may
// still list such an instance, because it keeps the answer of NodeGroupNodes for two minutes (CA
// clusterstate/utils/node_instances_cache.go). If CA lists an instance that has no group, it logs two warnings in
// each loop.
const releasedFor = 3 * time.Minute

type problem struct{ error }

// errLostHistory means that a group's position is behind a position that this server has already seen.
var errLostHistory = errors.New("the group's workflow lost history (it was reset, or Temporal was restored from a " +
	"backup): the group rebuilds its state from the existing objects")

func newGroup(t *terms) *group {
	g := &group{id: t.spec.ID, turn: semaphore.NewWeighted(1), reading: semaphore.NewWeighted(1)}
	g.terms.Store(t)
	return g
}

func newPicture(s fleet.Snapshot) *picture {
	p := &picture{Snapshot: s, counting: make(map[string]struct{}, s.Target), on: map[string]int{}}
	for _, i := range s.Instances {
		switch {
		case i.Phase == fleet.Failed:
		case i.Provider != "":
			p.on[i.Provider]++
		case i.Counts:
			p.waiting++
		}
		if i.Counts {
			p.counting[i.Name] = struct{}{}
		}
	}
	return p
}

// counts reports whether the instance counts towards the target size. In a nil picture no instance counts.
func (p *picture) counts(name string) bool {
	if p == nil {
		return false
	}
	_, ok := p.counting[name]
	return ok
}

// releasedWith returns the instances that were released less than releasedFor ago, with the times of their release.
// An instance is released if it counted in p or in an earlier picture, and does not count in the picture next.
func (p *picture) releasedWith(next *picture, now time.Time) map[string]time.Time {
	if p == nil {
		return nil
	}
	left := maps.Clone(p.left)
	maps.DeleteFunc(left, func(name string, at time.Time) bool { return now.Sub(at) >= releasedFor || next.counts(name) })
	for name := range p.counting {
		if !next.counts(name) {
			if left == nil {
				left = map[string]time.Time{}
			}
			left[name] = now
		}
	}
	return left
}

// released reports whether the instance counted, and was released less than releasedFor ago.
func (p *picture) released(name string, now time.Time) bool {
	if p == nil {
		return false
	}
	at, ok := p.left[name]
	return ok && now.Sub(at) < releasedFor
}

// readSince reports whether a read that started after t has confirmed or replaced the picture.
func (g *group) readSince(t time.Time) bool {
	at := g.readAt.Load()
	return at != nil && at.After(t)
}

// seen returns the newest position of the group that this server has seen.
func (g *group) seen() fleet.Position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.newest
}

// recordPosition records the position that an operation has returned.
func (g *group) recordPosition(at fleet.Position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.advance(at)
}

func (g *group) advance(at fleet.Position) {
	if g.newest.Before(at) {
		g.newest, g.newestAt = at, time.Now()
	}
}

// storeSnapshot stores a snapshot. began is the time at which the read of the snapshot started. If this server had
// already seen a newer position at this time, storeSnapshot returns errLostHistory. When it returns an error, the
// picture is unchanged.
func (g *group) storeSnapshot(s fleet.Snapshot, began time.Time) error {
	if s.Group != g.id || s.Epoch == "" {
		return fmt.Errorf("read group %s: got a snapshot of group %q, epoch %q: %w",
			g.id, s.Group, s.Epoch, fleet.ErrUnavailable)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	older := s.Position().Before(g.newest)
	if older && began.After(g.newestAt) {
		return fmt.Errorf("read group %s: its position %s/%d is behind %s/%d: %w",
			g.id, s.Epoch, s.Revision, g.newest.Epoch, g.newest.Revision, errLostHistory)
	}
	if s.Revision == 0 { // a new group publishes this before it has listed the existing objects
		return fmt.Errorf("read group %s: %w", g.id,
			fleet.Refuse(fleet.RefusedNotInitialised, "it is rebuilding its state from the existing objects"))
	}
	if !older { // an older snapshot is ignored: an operation returned a newer position during the read
		g.store(s, began)
	}
	return nil
}

// store replaces the picture when s is newer. If the read of s started at or after settlesAt, the group is no longer
// dirty.
func (g *group) store(s fleet.Snapshot, began time.Time) {
	g.advance(s.Position())
	if old := g.picture.Load(); old == nil || s.Newer(old.Snapshot) {
		next := newPicture(s)
		next.left = old.releasedWith(next, time.Now())
		g.picture.Store(next)
	}
	if at := g.readAt.Load(); at == nil || began.After(*at) {
		g.readAt.Store(&began)
	}
	if !began.Before(g.settlesAt) {
		g.lostAt, g.settlesAt = time.Time{}, time.Time{}
	}
}

// markUnknown makes the group dirty. An operation whose outcome is unknown may still run until settlesAt.
func (g *group) markUnknown(settlesAt time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lostAt.IsZero() {
		g.lostAt = time.Now()
	}
	if settlesAt.After(g.settlesAt) {
		g.settlesAt = settlesAt
	}
}

// markKnown ends the dirty state of the group: the operation whose answer was lost has certainly run.
func (g *group) markKnown() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lostAt, g.settlesAt = time.Time{}, time.Time{}
}

// dirty returns two times. The outcome of an operation is unknown since the first. A read that starts at the second
// or later shows this outcome. Both are zero when all outcomes are known.
func (g *group) dirty() (since, settlesAt time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lostAt, g.settlesAt
}

func (g *group) isDirty() bool {
	since, _ := g.dirty()
	return !since.IsZero()
}

// lists reports whether the snapshot contains the instance, also if the instance does not count.
func (p *picture) lists(name string) bool {
	return slices.ContainsFunc(p.Instances, func(i fleet.InstanceView) bool { return i.Name == name })
}
