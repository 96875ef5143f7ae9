package grpcserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
)

// fakeGroups is a correct in-memory implementation of Groups on real ledgers. An acknowledged operation has happened,
// and a refused operation has not. An operation whose caller has given up is not booked. The fields below change its
// behaviour.
type fakeGroups struct {
	mu     sync.Mutex
	groups map[string]*fakeGroup
	lives  map[string]int // the number of starts of each group

	down       bool             // Temporal does not answer
	failing    map[string]error // by group: the error that its reads and Configure return
	hangs      string           // a group whose reads return only when their caller gives up
	slow       time.Duration    // duration of each Configure
	slowRead   time.Duration    // duration of each Snapshot, which returns the state at its start
	runningErr error
	delay      time.Duration // duration of each mutation before its booking
	lose       lose          // whether and how the next mutation loses its answer
	onGrow     func()
	onBooked   func(fleet.Request) // called once, after the next booking

	calls  map[string]int
	ids    int
	closed []string
}

// fakeGroup is a ledger with its published memo.
type fakeGroup struct {
	ledger *fleet.Ledger
	snap   fleet.Snapshot
	exists []fleet.Found // the objects that a recovery of the group finds
	silent bool          // it publishes nothing

	refused map[int]fleet.Refusal // the calls that the last operation refused
}

// lose describes how the next mutation loses its answer. The zero value loses no answer.
type lose struct {
	active bool
	booked bool          // the mutation runs immediately; otherwise it runs late or never
	late   time.Duration // the mutation runs after this time
}

func newFake() *fakeGroups {
	return &fakeGroups{
		groups: map[string]*fakeGroup{}, lives: map[string]int{}, failing: map[string]error{}, calls: map[string]int{},
	}
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

// published returns the memo that a group has published.
func (f *fakeGroups) published(group string) fleet.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.groups[group].snap
}

// runs returns the running groups.
func (f *fakeGroups) runs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.groups))
}

func (f *fakeGroups) ended() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.closed)
}

func (f *fakeGroups) broken(group string) error {
	if f.down {
		return fmt.Errorf("describe group %s: %w: %w", group, fleet.ErrTemporal, fleet.ErrUnavailable)
	}
	return f.failing[group]
}

func (f *fakeGroups) Configure(ctx context.Context, spec fleet.GroupSpec, notice fleet.GroupNotice,
	seen fleet.Position) (fleet.Position, error) {
	var slow time.Duration
	f.set(func(f *fakeGroups) { f.calls["configure"]++; slow = f.slow })
	if slow > 0 && !wait.For(ctx, slow) {
		return fleet.Position{}, fmt.Errorf("configure %s: %w: %w", spec.ID, fleet.ErrOutcomeUnknown, ctx.Err())
	}
	return f.retry(ctx, func() (fleet.Position, error) {
		if err := f.broken(spec.ID); err != nil {
			return fleet.Position{}, err
		}
		g := f.groups[spec.ID]
		if g == nil {
			g = &fakeGroup{ledger: fleet.NewLedger(spec.ID, time.Now())}
			// A recovery waits until the clock is past the second in which the epoch began. With a zero Began it does
			// not wait.
			g.ledger.Epoch, g.ledger.Began = "t"+strconv.Itoa(f.lives[spec.ID]), time.Time{}
			g.ledger.LastBooked = g.ledger.Epoch // the names of the instances contain the epoch
			f.lives[spec.ID]++
			f.groups[spec.ID] = g
		}
		return g.operate(fleet.Configure, fleet.Request{Spec: &spec, Notice: notice, Seen: seen})
	})
}

func (f *fakeGroups) Snapshot(ctx context.Context, group string) (fleet.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hangs == group {
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		return fleet.Snapshot{}, fmt.Errorf("describe group %s: %w", group, ctx.Err())
	}
	f.calls["snapshot"]++
	if err := f.broken(group); err != nil {
		return fleet.Snapshot{}, err
	}
	g := f.groups[group]
	if g == nil {
		return fleet.Snapshot{}, fmt.Errorf("group %s: %w: %w", group, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	g.recover()
	snap, slow := g.snap, f.slowRead
	f.mu.Unlock()
	wait.For(ctx, slow)
	f.mu.Lock()
	return snap, nil
}

func (f *fakeGroups) Running(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.groups)), f.runningErr
}

func (f *fakeGroups) Close(_ context.Context, group string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = append(f.closed, group)
	delete(f.groups, group)
	return nil
}

func (f *fakeGroups) Grow(ctx context.Context, group string, delta int, priceCap float64,
	seen fleet.Position) (fleet.Position, error) {
	f.mu.Lock()
	hook := f.onGrow
	f.mu.Unlock()
	if hook != nil {
		hook()
	}
	return f.mutate(ctx, fleet.Grow, group, fleet.Request{Delta: delta, PriceCap: priceCap, Seen: seen})
}

func (f *fakeGroups) Shrink(ctx context.Context, group string, delta int, seen fleet.Position) (fleet.Position, error) {
	return f.mutate(ctx, fleet.Shrink, group, fleet.Request{Delta: delta, Seen: seen})
}

func (f *fakeGroups) NewCall(ctx context.Context, names []string) fleet.Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids++
	return fleet.Call{Operation: fleet.Operation{ID: fmt.Sprint("call", f.ids), GiveUpAt: giveUpAt(ctx)}, Names: names}
}

func (f *fakeGroups) ReleaseEach(ctx context.Context, group string, calls []fleet.Call,
	seen fleet.Position) (at fleet.Position, refused map[int]fleet.Refusal, err error) {
	at, err = f.mutate(ctx, fleet.Release, group, fleet.Request{Calls: slices.Clone(calls), Seen: seen})
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.groups[group]; g != nil && err == nil {
		refused = g.refused
	}
	return at, refused, err
}

// giveUpAt returns the time after which an operation of this caller expires.
func giveUpAt(ctx context.Context) time.Time {
	if deadline, ok := ctx.Deadline(); ok {
		return deadline.Add(-fleet.GiveUpBefore)
	}
	return time.Now().Add(time.Hour)
}

func (f *fakeGroups) mutate(ctx context.Context, verb fleet.Verb, group string, r fleet.Request) (fleet.Position, error) {
	f.mu.Lock()
	f.calls[string(verb)]++
	r.Operation = fleet.Operation{ID: fmt.Sprint(verb, f.calls[string(verb)]), GiveUpAt: giveUpAt(ctx)}
	delay := f.delay
	f.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done(): // the operation has expired
		}
	}
	return f.retry(ctx, func() (fleet.Position, error) { return f.once(ctx, verb, group, r) })
}

func (f *fakeGroups) once(ctx context.Context, verb fleet.Verb, group string, r fleet.Request) (fleet.Position, error) {
	if f.down {
		return fleet.Position{}, fmt.Errorf("%s %s: %w", verb, group, fleet.ErrUnavailable)
	}
	if ctx.Err() != nil {
		return fleet.Position{}, fleet.Refuse(fleet.RefusedExpired, "the caller has given up")
	}
	g := f.groups[group]
	if g == nil {
		return fleet.Position{}, fmt.Errorf("%s %s: %w: %w", verb, group, fleet.ErrNotRunning, fleet.ErrUnavailable)
	}
	lost := f.lose
	f.lose = lose{}
	if lost.active {
		if lost.booked {
			_, _ = g.operate(verb, r)
		}
		if lost.late > 0 { // the group began the operation before the caller gave up
			r.Operation.GiveUpAt = time.Now().Add(time.Hour)
			for n := range r.Calls {
				r.Calls[n].Operation.GiveUpAt = r.Operation.GiveUpAt
			}
			time.AfterFunc(lost.late, func() { f.set(func(*fakeGroups) { _, _ = g.operate(verb, r) }) })
		}
		return fleet.Position{}, fmt.Errorf("%s %s: %w", verb, group, errors.Join(fleet.ErrOutcomeUnknown,
			context.DeadlineExceeded))
	}
	at, err := g.operate(verb, r)
	if f.onBooked != nil && err == nil {
		f.onBooked(r)
		f.onBooked = nil
	}
	return at, err
}

// retry repeats a call while the group recovers, until ctx ends, as the real client does.
func (f *fakeGroups) retry(ctx context.Context, once func() (fleet.Position, error)) (fleet.Position, error) {
	for {
		f.mu.Lock()
		at, err := once()
		f.mu.Unlock()
		var refusal *fleet.Refusal
		if !errors.As(err, &refusal) || refusal.Kind != fleet.RefusedNotInitialised {
			return at, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return at, fmt.Errorf("%w: %w", fleet.ErrUnavailable, err)
		}
	}
}

func (g *fakeGroup) operate(verb fleet.Verb, r fleet.Request) (fleet.Position, error) {
	g.recover()
	now := time.Now()
	at := now
	if verb == fleet.Grow && !now.After(r.Operation.GiveUpAt) { // an expired call uses the present time
		at = began(g.ledger.Epoch)
	}
	var err error
	g.refused, err = g.ledger.OperateEach(verb, r, at)
	for _, e := range g.ledger.Entries {
		if e.BookedAt.Equal(at) { // the second is only for the name, and not the time of the booking
			e.BookedAt, e.Since = now, now
		}
	}
	g.publish()
	if err != nil {
		return fleet.Position{}, err
	}
	return g.ledger.Receipt(now).Position, nil
}

// The name of an epoch is the second (Unix time) in which it began. began returns this time. An instance that is
// booked in this second has the epoch in its name, so that tests can predict the name.
func began(epoch string) time.Time {
	second, err := strconv.ParseInt(epoch, 36, 64)
	if err != nil {
		panic(err)
	}
	return time.Unix(second, 0)
}

// recover completes a recovery of the group, if the clock is past the second in which the group's epoch began.
func (g *fakeGroup) recover() {
	if !g.ledger.Recovering {
		return
	}
	in := fleet.GroupInput{}
	if open := g.ledger.Commands.Open; len(open) > 0 && open[0].Kind == fleet.CommandRecover {
		in.Result = &fleet.Result{ID: open[0].ID, Outcome: fleet.OutcomeDone, Found: g.exists}
	}
	g.ledger.Step(in, time.Now())
	g.publish()
}

func (g *fakeGroup) publish() {
	if !g.silent {
		g.snap = g.ledger.Snapshot(time.Now())
	}
}

// drop removes released instances, as the end of their drivers does.
func (f *fakeGroups) drop(group string) {
	f.change(group, func(l *fleet.Ledger) {
		for _, e := range l.Entries {
			if e.Leaving {
				e.Phase = fleet.Released
			}
		}
	})
}

// change edits a group's ledger and publishes it.
func (f *fakeGroups) change(group string, edit func(l *fleet.Ledger)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.groups[group]
	edit(g.ledger)
	g.ledger.Revision++
	g.publish()
}

func (f *fakeGroups) ready(group string, n int) {
	f.change(group, func(l *fleet.Ledger) {
		for _, e := range l.Entries[:n] {
			e.Phase, e.Registered = fleet.Ready, true
		}
	})
}

func (f *fakeGroups) target(group string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.groups[group]; g != nil {
		return g.ledger.Target()
	}
	return 0
}
