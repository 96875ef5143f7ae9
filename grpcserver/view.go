package grpcserver

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// group is one node group and what is known of it. Reads take no lock.
type group struct {
	id    string
	terms atomic.Pointer[terms] // never nil; replaced as the config changes

	// turn serialises the group's mutations: whoever takes the token may book.
	turn chan struct{}

	picture atomic.Pointer[picture]   // nil until the first snapshot
	readAt  atomic.Pointer[time.Time] // when picture was last known to hold; nil until the first snapshot

	mu        sync.Mutex    // guards what follows and the replacement of picture
	storedAt  time.Time     // when picture was put
	settlesAt time.Time     // not zero: dirty; from then on a read tells what became of the lost operation
	loaded    chan struct{} // closed with the first snapshot
}

// picture is a snapshot, indexed. It is never changed once stored.
type picture struct {
	fleet.Snapshot
	counting map[string]struct{} // names of the instances that count
}

func newGroup(t *terms) *group {
	g := &group{id: t.spec.ID, turn: make(chan struct{}, 1), loaded: make(chan struct{})}
	g.terms.Store(t)
	g.turn <- struct{}{}
	return g
}

func newPicture(s fleet.Snapshot) *picture {
	p := &picture{Snapshot: s, counting: make(map[string]struct{}, s.Target)}
	for _, i := range s.Instances {
		if i.Counts {
			p.counting[i.Name] = struct{}{}
		}
	}
	return p
}

// counts tells whether the instance counts. A nil picture has none.
func (p *picture) counts(name string) bool {
	if p == nil {
		return false
	}
	_, ok := p.counting[name]
	return ok
}

// takeTurn waits for the group's other mutations; nothing was changed when it returns an error.
func (g *group) takeTurn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-g.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *group) giveTurn() { g.turn <- struct{}{} }

// put lets s replace the picture when it is newer, and ends dirtiness when the call that returned s began late enough.
// began is when that call began. A snapshot older than a picture that was stored before the call began cannot come from
// the same history: an error, and the picture stays.
func (g *group) put(s fleet.Snapshot, began time.Time) error {
	if s.Group != g.id || s.Epoch == "" {
		return fmt.Errorf("read group %s: got a snapshot of group %q, epoch %q: %w", g.id, s.Group, s.Epoch, fleet.ErrUnavailable)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	old := g.picture.Load()
	if old != nil && old.Newer(s) && began.After(g.storedAt) {
		return fmt.Errorf("read group %s: its state went back from %s/%d to %s/%d: if its workflow was reset, it begins anew by itself; "+
			"if Temporal was restored from a backup, restart this server: %w", g.id, old.Epoch, old.Sequence, s.Epoch, s.Sequence, fleet.ErrUnavailable)
	}
	if old == nil || s.Newer(old.Snapshot) {
		g.picture.Store(newPicture(s))
		g.storedAt = time.Now()
	}
	if at := g.readAt.Load(); at == nil || began.After(*at) {
		g.readAt.Store(&began)
	}
	if old == nil {
		close(g.loaded)
	}
	if !g.settlesAt.IsZero() && !began.Before(g.settlesAt) {
		g.settlesAt = time.Time{}
	}
	return nil
}

// lost makes the group dirty: an operation may still run until settlesAt.
func (g *group) lost(settlesAt time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if settlesAt.After(g.settlesAt) {
		g.settlesAt = settlesAt
	}
}

// found ends dirtiness: the lost operation has been seen to have run.
func (g *group) found() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settlesAt = time.Time{}
}

// dirtyUntil is when a read can tell what became of a lost operation; zero when none is lost.
func (g *group) dirtyUntil() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settlesAt
}

// lists tells whether the snapshot lists the instance, counting or not.
func (p *picture) lists(name string) bool {
	for _, i := range p.Instances {
		if i.Name == name {
			return true
		}
	}
	return false
}
