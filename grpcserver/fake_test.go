package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/workflows/fleet"
)

// fakeGroups is an honest in-memory Groups: what it acknowledges has happened, what it refuses has not, and it commits
// nothing a caller has given up. Knobs below.
type fakeGroups struct {
	mu     sync.Mutex
	groups map[string]*fakeGroup

	down    bool             // the store does not answer
	failing map[string]error // by group: what its reads and Configure answer
	delay   time.Duration    // of each mutation, before it commits
	margin  time.Duration    // how long before its caller's deadline a mutation expires
	lose    lose             // what becomes of the next mutation's answer
	calls   map[string]int
	onGrow  func()
}

type fakeGroup struct {
	spec fleet.GroupSpec
	seq  int
	snap fleet.Snapshot
}

// lose says how the next mutation loses its answer; the zero value loses nothing.
type lose struct {
	active bool
	booked bool          // it runs at once; else it never runs, or late
	late   time.Duration // it runs after this long
}

const fakeEpoch = "t0"

func newFake() *fakeGroups {
	return &fakeGroups{groups: map[string]*fakeGroup{}, failing: map[string]error{}, calls: map[string]int{}}
}

func (f *fakeGroups) set(change func(*fakeGroups)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeGroups) called(verb string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[verb]
}

func (f *fakeGroups) Configure(_ context.Context, spec fleet.GroupSpec) (fleet.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls["configure"]++
	if err := f.broken(spec.ID); err != nil {
		return fleet.Snapshot{}, err
	}
	g := f.groups[spec.ID]
	if g == nil {
		g = &fakeGroup{snap: fleet.Snapshot{Group: spec.ID, Epoch: fakeEpoch}}
		f.groups[spec.ID] = g
	}
	g.spec = spec
	g.publish()
	return g.snap, nil
}

func (f *fakeGroups) Snapshot(_ context.Context, group string) (fleet.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls["snapshot"]++
	if err := f.broken(group); err != nil {
		return fleet.Snapshot{}, err
	}
	g := f.groups[group]
	if g == nil {
		return fleet.Snapshot{}, fmt.Errorf("group %s: %w: %w", group, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	return g.snap, nil
}

func (f *fakeGroups) broken(group string) error {
	if f.down {
		return fmt.Errorf("describe group %s: %w", group, fleet.ErrUnavailable)
	}
	return f.failing[group]
}

func (f *fakeGroups) Grow(ctx context.Context, group string, delta int) (fleet.Snapshot, error) {
	f.mu.Lock()
	hook := f.onGrow
	f.mu.Unlock()
	if hook != nil {
		hook()
	}
	return f.mutate(ctx, "grow", group, func(g *fakeGroup) error {
		if g.snap.Target+delta > g.spec.Max {
			return fleet.Refuse(fleet.RefusedMax, "above max")
		}
		for range delta {
			g.seq++
			g.snap.Instances = append(g.snap.Instances, fleet.InstanceView{
				Name: fleet.InstanceName(group, fakeEpoch, g.seq), Phase: fleet.Pending, State: fleet.StateCreating, Counts: true,
			})
		}
		return nil
	})
}

func (f *fakeGroups) Shrink(ctx context.Context, group string, delta int) (fleet.Snapshot, error) {
	return f.mutate(ctx, "shrink", group, func(g *fakeGroup) error {
		var pending []string
		for _, i := range slices.Backward(g.snap.Instances) {
			if i.Counts && !i.Registered && len(pending) < delta {
				pending = append(pending, i.Name)
			}
		}
		if len(pending) == 0 {
			return fleet.Refuse(fleet.RefusedPrecondition, "nothing can be cancelled")
		}
		g.release(pending)
		return nil
	})
}

func (f *fakeGroups) Release(ctx context.Context, group string, names []string) (fleet.Snapshot, error) {
	return f.mutate(ctx, "release", group, func(g *fakeGroup) error {
		g.release(names)
		return nil
	})
}

func (g *fakeGroup) release(names []string) {
	for i := range g.snap.Instances {
		if v := &g.snap.Instances[i]; slices.Contains(names, v.Name) {
			v.Counts, v.State, v.Phase = false, fleet.StateDeleting, fleet.Draining
		}
	}
}

func (f *fakeGroups) mutate(ctx context.Context, verb, group string, change func(*fakeGroup) error) (fleet.Snapshot, error) {
	f.mu.Lock()
	delay := f.delay
	f.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done(): // sent, and the answer never came; but it has expired by then
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[verb]++
	if f.down {
		return fleet.Snapshot{}, fmt.Errorf("%s %s: %w", verb, group, fleet.ErrUnavailable)
	}
	if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) < f.margin {
		return fleet.Snapshot{}, fleet.Refuse(fleet.RefusedExpired, "the caller has given up")
	}
	g := f.groups[group]
	if g == nil {
		return fleet.Snapshot{}, fleet.Refuse(fleet.RefusedNotInitialised, "no spec yet")
	}
	run := func() error {
		if err := change(g); err != nil {
			return err
		}
		g.publish()
		return nil
	}
	lost := f.lose
	f.lose = lose{}
	if lost.active {
		if lost.booked {
			_ = run()
		}
		if lost.late > 0 {
			time.AfterFunc(lost.late, func() { f.set(func(*fakeGroups) { _ = run() }) })
		}
		return fleet.Snapshot{}, fmt.Errorf("%s %s: %w", verb, group, errors.Join(fleet.ErrOutcomeUnknown, context.DeadlineExceeded))
	}
	if err := run(); err != nil {
		return fleet.Snapshot{}, err
	}
	return g.snap, nil
}

// publish counts the target and makes a new snapshot; old ones stay as they were.
func (g *fakeGroup) publish() {
	s := g.snap
	s.Instances = slices.Clone(g.snap.Instances)
	s.Sequence++
	spec := g.spec
	s.Min, s.Max, s.SpecHash, s.Spec, s.Booked, s.At = spec.Min, spec.Max, spec.Hash(), &spec, g.seq, time.Now()
	s.Target = 0
	for _, i := range s.Instances {
		if i.Counts {
			s.Target++
		}
	}
	g.snap = s
}

// drop makes released instances vanish, as their workflows' end does.
func (f *fakeGroups) drop(group string) {
	f.change(group, func(s *fleet.Snapshot) {
		s.Instances = slices.DeleteFunc(s.Instances, func(v fleet.InstanceView) bool { return !v.Counts })
	})
}

// change edits a group's instances as its workflow would.
func (f *fakeGroups) change(group string, edit func(s *fleet.Snapshot)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groups[group]
	g.snap.Instances = slices.Clone(g.snap.Instances)
	edit(&g.snap)
	g.publish()
}

func (f *fakeGroups) ready(group string, n int) {
	f.change(group, func(s *fleet.Snapshot) {
		for i := range n {
			v := &s.Instances[i]
			v.Phase, v.State, v.Registered = fleet.Ready, fleet.StateRunning, true
		}
	})
}

func (f *fakeGroups) target(group string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.groups[group]; g != nil {
		return g.snap.Target
	}
	return 0
}
