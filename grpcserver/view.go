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

// group holds one node group and the server's knowledge about it. Reading its picture needs no lock.
type group struct {
	id    string
	terms atomic.Pointer[terms] // never nil; replaced as the config changes

	// turn serialises the group's mutations: only the holder of this semaphore may send one.
	turn *semaphore.Weighted
	// reading serialises the reads of Refresh. A call uses the result of another call's read if that read started later
	// than the call.
	reading *semaphore.Weighted

	picture  atomic.Pointer[picture]   // nil until the first snapshot
	readAt   atomic.Pointer[time.Time] // when picture was last known to be valid; nil until the first snapshot
	unusable atomic.Pointer[problem]   // why the last Refresh could not read or configure the group; nil when it could

	limitsReached atomic.Int64 // limits of spending that are already logged

	caWaits atomic.Int64 // CA's last max-node-provision-time, in nanoseconds; 0 before the first

	mu        sync.Mutex     // guards the fields below and the replacement of picture
	newest    fleet.Position // newest position that a snapshot had or an operation returned
	newestAt  time.Time      // when newest was set
	lostAt    time.Time      // not zero: dirty, the outcome of an operation is unknown
	settlesAt time.Time      // a read that starts at or after this time shows the outcome
	deletions []*deletion    // waiting for the turn; the call that adds the first one books them
}

// picture is a snapshot of a group with indexes. It is never changed once stored.
type picture struct {
	fleet.Snapshot
	counting map[string]struct{} // names of the instances that count
	on       map[string]int      // number of instances of each provider
	waiting  int                 // number of counting instances without a provider
	// left maps the names of instances that counted in earlier pictures to the times of their release. Entries are dropped
	// after releasedFor.
	left map[string]time.Time
}

// releasedFor is the time for which CA may still list the placeholder of an instance that was released. CA keeps the
// answer of NodeGroupNodes for two minutes (CA clusterstate/utils/node_instances_cache.go). In each loop CA logs two
// warnings for each listed instance that has no group.
const releasedFor = 3 * time.Minute

type problem struct{ error }

// errLostHistory means that a group's position is behind the position that this server has seen.
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

// releasedWith returns the instances that no longer count in the next picture and stopped counting less than
// releasedFor ago, with the times of their release.
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

// readSince reports whether a read that started after t has confirmed the picture.
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

// storeSnapshot stores a snapshot. began is the time at which its read started. It returns errLostHistory when the
// snapshot is older than a position that this server had seen before began. After an error the picture is unchanged.
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
	if s.Revision == 0 { // published by a new group before it has listed the existing objects
		return fmt.Errorf("read group %s: %w", g.id,
			fleet.Refuse(fleet.RefusedNotInitialised, "it is rebuilding its state from the existing objects"))
	}
	if !older { // an older snapshot was read while an operation ran
		g.store(s, began)
	}
	return nil
}

// store replaces the picture when s is newer. It makes the group no longer dirty when the read of s started at or after
// settlesAt.
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

// markUnknown makes the group dirty: an operation may still run until settlesAt.
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

// markKnown makes the group no longer dirty, because the operation whose answer was lost is known to have run.
func (g *group) markKnown() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lostAt, g.settlesAt = time.Time{}, time.Time{}
}

// dirty returns the time since which the outcome of an operation is unknown, and the earliest start of a read that
// shows this outcome. Both are zero when all outcomes are known.
func (g *group) dirty() (since, settlesAt time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lostAt, g.settlesAt
}

func (g *group) isDirty() bool {
	since, _ := g.dirty()
	return !since.IsZero()
}

// lists reports whether the snapshot lists the instance, counting or not.
func (p *picture) lists(name string) bool {
	return slices.ContainsFunc(p.Instances, func(i fleet.InstanceView) bool { return i.Name == name })
}
