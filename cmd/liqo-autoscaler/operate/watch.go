package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/liqo-autoscaler/liqo-autoscaler/cmd/liqo-autoscaler/show"
	"github.com/liqo-autoscaler/liqo-autoscaler/discovery/market"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/cli/output"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/fleet/money"
	"github.com/liqo-autoscaler/liqo-autoscaler/internal/wait"
	flow "github.com/liqo-autoscaler/liqo-autoscaler/workflows/client"
)

// These constants are the intervals of a watch.
const (
	watchNewGroups = 2 * time.Second // interval of listing the groups
	watchEnded     = time.Minute     // interval of reading the costs of ended groups
	watchAgain     = time.Second     // wait before a group is followed again after a failure
)

// streamStatus prints the status and then each change, until ctx ends.
func streamStatus(ctx context.Context, r reader, f statusFlags, m *market.Market, out, errOut io.Writer) error {
	reading, cancel := context.WithTimeout(ctx, cli.ReadTimeout)
	defer cancel()
	first, err := f.read(reading, r, m)
	if ctx.Err() != nil {
		return nil
	}
	v := stream{output: f.output, selected: f.Selection, out: out, errOut: errOut}
	v.selected.Providers = first.providers
	if err := v.printFirst(f, first, err); err != nil {
		return err
	}
	if f.output == "json" {
		first.snapshots = nil // so that the watch prints a first line for each instance
	}
	return watchStatus(ctx, r, f, v, first)
}

// printFirst prints the first reading. If err is set and the reading has no group, printFirst prints nothing and
// returns err.
func (v stream) printFirst(f statusFlags, first reading, err error) error {
	if err != nil {
		if len(first.snapshots) == 0 && !fleet.IsRefused(err, fleet.RefusedNotInitialised) {
			return err
		}
		v.failed(err)
	}
	if v.output == "json" {
		return nil
	}
	style := output.StyleFor(v.out)
	if len(first.snapshots) > 0 || err == nil {
		if err := output.Print(v.out, v.output, style, f.shown(first.Status)); err != nil {
			return err
		}
		fmt.Fprintln(v.out)
	}
	style.Wide = v.output == "wide"
	return show.ChangeHeader(v.out, style)
}

// watchStatus follows the groups and prints every change with v until ctx ends. If it fails to follow a group, it
// tries again.
func watchStatus(ctx context.Context, r reader, f statusFlags, v stream, first reading) error {
	w := &watcher{
		groups: r.groups, flags: f, snapshots: make(chan fleet.Snapshot), results: make(chan result),
		followed: map[string]bool{}, last: map[string]fleet.Snapshot{}, accounts: first.accounts,
		endedGroups: r.hub.Ended, ended: make(chan money.Ended),
	}
	for _, s := range first.snapshots {
		w.last[s.Group] = s
	}
	followers, run := errgroup.WithContext(ctx)
	w.followers = followers
	followers.Go(func() error { return w.findGroups(run) })
	followers.Go(func() error { return w.readEnded(run) })
	followers.Go(func() error { return w.printChanges(run, v) })
	if err := followers.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

type watcher struct {
	groups    *flow.Groups
	flags     statusFlags
	followers *errgroup.Group
	snapshots chan fleet.Snapshot
	results   chan result

	mu       sync.Mutex
	followed map[string]bool

	last map[string]fleet.Snapshot // the snapshot that was printed last, by group

	accounts    accounts
	endedGroups func(context.Context) (money.Ended, error)
	ended       chan money.Ended
}

// result is the result of following a group or, if the field group is "", of listing the groups. The field err is nil
// after a success.
type result struct {
	group string
	err   error
}

// findGroups follows every selected group, including groups that start later.
func (w *watcher) findGroups(ctx context.Context) error {
	for {
		names, err := w.flags.names(ctx, w.groups)
		if !send(ctx, w.results, result{err: err}) {
			return nil
		}
		for _, name := range names {
			if w.isNew(name) {
				w.followers.Go(func() error { w.follow(ctx, name); return nil })
			}
		}
		if !wait.For(ctx, watchNewGroups) {
			return nil
		}
	}
}

func (w *watcher) isNew(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	is := !w.followed[name]
	w.followed[name] = true
	return is
}

// follow sends the group's present snapshot and each later snapshot, until ctx ends or the group's workflow ends.
func (w *watcher) follow(ctx context.Context, name string) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.followed[name] = false
	}()
	for {
		first, err := w.groups.Snapshot(ctx, name)
		if errors.Is(err, fleet.ErrNotRunning) && !w.flags.exact() {
			send(ctx, w.results, result{group: name})
			return // when the group starts again, findGroups starts another follow
		}
		if err == nil && send(ctx, w.snapshots, first) {
			err = w.groups.Follow(ctx, name, first.Position(), func(s fleet.Snapshot) error {
				if !send(ctx, w.snapshots, s) {
					return ctx.Err()
				}
				return nil
			})
		}
		if !errors.Is(err, flow.ErrClosed) && !notYet(err) {
			send(ctx, w.results, result{name, fmt.Errorf("watch %s: %w", name, err)})
		}
		if !wait.For(ctx, watchAgain) {
			return
		}
	}
}

// notYet reports whether err means that a group does not run, or that it is rebuilding its state. Neither is a
// failure, because both states may end without an operator's action.
func notYet(err error) bool {
	return errors.Is(err, fleet.ErrNotRunning) || fleet.IsRefused(err, fleet.RefusedNotInitialised)
}

// outage contains the groups that cannot be read now. Its keys are values of result.group.
type outage map[string]bool

// update updates the outage with one result. It calls v.failed when an outage starts, and v.recovered when it ends.
func (o outage) update(h result, v stream) {
	was := len(o) > 0
	if delete(o, h.group); h.err != nil {
		o[h.group] = true
	}
	switch is := len(o) > 0; {
	case is && !was:
		v.failed(h.err)
	case was && !is:
		v.recovered()
	}
}

// printChanges prints all changes until ctx ends. No other function calls the methods of v.
func (w *watcher) printChanges(ctx context.Context, v stream) error {
	failing := outage{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-w.ended:
			w.accounts.ended = e.Rows
		case h := <-w.results:
			failing.update(h, v)
		case s := <-w.snapshots:
			failing.update(result{group: s.Group}, v)
			before, known := w.last[s.Group]
			w.last[s.Group] = s
			if known && !s.Newer(before) {
				continue
			}
			if err := v.changed(before, s, w.balance); err != nil {
				return fmt.Errorf("print: %w", err)
			}
		}
	}
}

// send sends v to the channel. It returns false if ctx ends first.
func send[T any](ctx context.Context, to chan<- T, v T) bool {
	select {
	case to <- v:
		return true
	case <-ctx.Done():
		return false
	}
}
